//! Small things that several pages show.

use jiff::Timestamp;
use maud::{Markup, PreEscaped, html};
use potluck_release::exchange::GuaranteeNumbers;
use potluck_report::numbers;
use potluck_report::words::name;

use super::visitor::FORM_SECRET;
use crate::store::{Session, StudyRecord};

/// The hidden field that a form of this session carries.
pub(super) fn secret(session: &Session) -> Markup {
    html! { input type="hidden" name=(FORM_SECRET) value=(session.form_secret); }
}

/// A time as people read it, in UTC.
pub(super) fn time(rfc3339: &str) -> Markup {
    let shown = rfc3339
        .parse::<Timestamp>()
        .map_or_else(|_| rfc3339.to_owned(), |time| time.strftime("%-d %b %Y, %H:%M UTC").to_string());
    html! { time datetime=(rfc3339) { (shown) } }
}

/// A size as people read it.
pub(super) fn size(bytes: u64) -> String {
    match bytes as f64 {
        bytes if bytes < 1e3 => format!("{bytes} bytes"),
        bytes if bytes < 1e6 => format!("{} kB", numbers::significant(bytes / 1e3, 3)),
        bytes if bytes < 1e9 => format!("{} MB", numbers::significant(bytes / 1e6, 3)),
        bytes => format!("{} GB", numbers::significant(bytes / 1e9, 3)),
    }
}

/// "1 party", "3 parties".
pub(super) fn counted(count: u64, one: &str, several: &str) -> String {
    format!("{} {}", numbers::count(count), if count == 1 { one } else { several })
}

/// The first digits of a hash or key; all of them on demand.
pub(super) fn digest(what: &str, hexadecimal: &str) -> Markup {
    html! {
        details .digest {
            summary { span .unseen { (what) " " } code { (hexadecimal.get(..12).unwrap_or(hexadecimal)) "…" } }
            code { (hexadecimal) }
        }
    }
}

/// Text to copy, such as commands.
pub(super) fn snippet(what: &str, text: &str) -> Markup {
    html! {
        div .snippet {
            pre tabindex="0" aria-label=(what) { code { (text) } }
            (copy_button(what, text))
        }
    }
}

/// A button that copies; it shows itself where there is JavaScript.
pub(super) fn copy_button(what: &str, text: &str) -> Markup {
    html! { button .copy type="button" hidden data-copy=(text) { "Copy" span .unseen { " " (what) } } }
}

/// The titles of a table's columns, and whether they hold numbers. The roles here and in the cells
/// repeat what the elements mean, because some browsers forget it where a stylesheet lays rows out
/// as cards.
pub(super) fn titles(columns: &[(&str, bool)]) -> Markup {
    html! {
        thead role="rowgroup" {
            tr role="row" {
                @for (title, number) in columns { th role="columnheader" scope="col" .number[*number] { (title) } }
            }
        }
    }
}

/// A table that scrolls inside itself where it is wider than the screen.
pub(super) fn scrolling(what: &str, table: &Markup) -> Markup {
    html! { div .scroll role="region" aria-label=(what) tabindex="0" { (table) } }
}

/// ε and δ.
pub(super) fn guarantee(numbers: &GuaranteeNumbers) -> Markup {
    html! {
        "ε = " (numbers::rounded_up(numbers.epsilon))
        span .aside { "δ = " (numbers::significant(numbers.delta, 6)) }
    }
}

/// How far the parties are, one mark for each.
pub(super) fn progress(record: &StudyRecord) -> Markup {
    let (released, all) = (record.released() as u64, record.parties.len() as u64);
    html! {
        span .progress role="img" aria-label={ (released) " of " (counted(all, "party", "parties")) " released" } {
            @for party in record.parties.iter().take(24) {
                @if party.release.is_some() { span .released {} }
                @else if party.accepted.is_some() { span .accepted {} }
                @else { span {} }
            }
        }
    }
}

/// Where a study stands, in a few words.
pub(super) fn standing(record: &StudyRecord) -> (&'static str, &'static str) {
    let all = record.parties.len();
    if record.closed.is_some() {
        return ("closed", "Closed");
    }
    match (&record.dataset, record.released()) {
        (Some(dataset), _) if dataset.parties.len() == all => ("complete", "Dataset available"),
        (Some(_), _) => ("partial", "Early dataset available"),
        (None, 0) if record.accepted() < all => ("waiting", "Waiting for acceptances"),
        (None, _) => ("waiting", "Waiting for releases"),
    }
}

/// The standing as a badge.
pub(super) fn badge(record: &StudyRecord) -> Markup {
    let (class, words) = standing(record);
    html! { span .badge .(class) { (words) } }
}

/// Where one is.
pub(super) fn trail(steps: &[(&str, &str)]) -> Markup {
    html! {
        nav .trail aria-label="Breadcrumb" {
            ol { @for (address, words) in steps { li { a href=(address) { (name(words)) } } } }
        }
    }
}

/// Markup that was rendered before.
pub(super) fn rendered(html: &str) -> Markup {
    PreEscaped(html.to_owned())
}

/// Something that went wrong, said where it is seen first.
pub(super) fn alarm(title: &str, detail: &str) -> Markup {
    html! { div .alarm role="alert" { p { strong { (title) } } p { (detail) } } }
}
