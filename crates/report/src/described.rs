//! A model with what can be said of it, for programs that show it to people.

use potluck_release::Model;
use potluck_release::findings::{HEADING, Said};
use potluck_release::model::Coefficient;
use serde_json::{Value, json};

use crate::{Point, limits};

/// The model as in its file, and beside it in words, so that every program says the same:
/// the `headline`, `findings` as sentences under `heading`, `collinear` features as sentences, what
/// each level is compared with (`references`), `marks` of coefficients and R² in a few words,
/// `fault` where the fit is not sound, what the coefficients are (`estimated`), what values were
/// cut to (`cut_to`), and `limits`.
pub fn described(model: &Model) -> Value {
    let point = |point: &Point| json!({ "title": point.title(), "text": point.to_string() });
    let said = |said: &Said| json!({ "kind": said.kind, "text": said.sentence.to_string(), "coefficients": said.coefficients });
    let mut value = serde_json::to_value(model).expect("a model holds only finite numbers");
    value["headline"] = model.headline().to_string().into();
    value["collinear"] = model.collinear().iter().map(ToString::to_string).collect();
    let reference = |one: &Coefficient| model.reference(&one.term).map(|reference| reference.to_string());
    value["references"] = model.coefficients.iter().map(reference).collect();
    value["heading"] = HEADING.into();
    value["findings"] = model.findings().iter().map(said).collect();
    value["marks"] = json!({
        "coefficients": model.coefficients.iter().map(Coefficient::mark).collect::<Vec<_>>(),
        "r_squared": model.r_squared_mark(),
    });
    value["fault"] = model.diagnostics.fault().into();
    value["estimated"] = model.estimated().into();
    value["cut_to"] = model.cut_to().iter().map(ToString::to_string).collect();
    value["limits"] = limits(model, None).iter().map(point).collect();
    value
}
