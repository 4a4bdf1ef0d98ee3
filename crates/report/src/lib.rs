//! Reports: a fitted regression and the public dataset behind it, for people to read.
//!
//! [`page()`] makes one HTML file that stands alone: no script, no external resource, and a content
//! security policy that forbids both. Its parts are fragments that a server can put into pages of
//! its own: [`article()`] is the whole report without the document around it, [`outcome()`] the
//! part that belongs to the fit, [`overview()`] what releases say of people and values,
//! [`coefficient_plot`], [`parts_plot`] and [`noise_plot`] are SVG, [`limits()`] says what limits
//! accuracy, on a terminal too, and [`privacy_statement`] says in words and numbers what the
//! releases promise. [`described()`] is a model with all such words, for programs. [`study_card`],
//! [`dataset_card`] and [`model_card`] are for notebooks. Fragments take their colours from
//! [`STYLESHEET`]; charts also look right without it.
//!
//! Everything here reads published things only. Names, units and descriptions come from strangers
//! and are escaped wherever they are shown.

mod article;
mod card;
mod chart;
mod correlations;
mod described;
pub mod drawing;
mod limits;
pub mod numbers;
mod page;
mod people;
mod preview;
mod privacy;
pub mod steps;
mod table;
pub mod words;

pub use article::{article, outcome};
pub use card::{dataset_card, model_card, study_card};
pub use chart::Layout;
pub use chart::coefficients::{coefficient_plot, coefficient_plot_in};
pub use chart::correlations::correlation_plot_in;
pub use chart::distributions::distributions_plot_in;
pub use chart::noise::{noise_plot, noise_plot_in};
pub use chart::noticed::{Noticed, noticed_plot_in};
pub use chart::overlaps::overlaps_plot_in;
pub use chart::parts::{parts_plot, parts_plot_in};
pub use chart::people::people_plot_in;
pub use correlations::{correlations_outcome, correlations_page};
pub use described::described;
pub use limits::{Point, limits};
pub use page::{STYLESHEET, page};
pub use people::{Overview, overview};
pub use preview::preview_page;
pub use privacy::privacy_statement;
