//! Names that stand for changing text: drawn, counted, or captured from answers.

use serde_saphyr::Spanned;

use crate::layers::reader::{Reader, Setting, setting};
use crate::mistakes::{Place, WrongRequest};
use crate::plan::{HttpRequest, Variable, VariableLaw};
use crate::scenario::{BotsKeys, NameOr, Text, VariableKeys};
use crate::units::{UnitError, http};

const VARIABLES: Setting = Setting {
    flag: "",
    key: "bots.variables",
    example: "",
    example_in_file: "{ user: { from: 1, to: 1000 } }",
};
const FROM: Setting = setting("", "bots.variables.from", "1");
const TO: Setting = setting("", "bots.variables.to", "1000");
const ONE_OF: Setting =
    Setting { flag: "", key: "bots.variables.one_of", example: "", example_in_file: "[red, green]" };
const BEFORE: Setting = setting("", "bots.variables.before", "0");

/// What stands for a captured variable before the first answer, where nobody says.
const BEFORE_USUAL: &str = "0";

/// The variables of the plan, and whether the requests use no others.
pub(super) fn read(reader: &mut Reader, keys: &BotsKeys, requests: &[(HttpRequest, Place)]) -> Vec<Variable> {
    let mut variables = Vec::new();
    for (name, written) in keys.variables.iter().flatten() {
        let law = law(reader, name, written);
        variables.extend(law.map(|law| Variable { name: name.clone(), law }));
    }
    for (request, place) in requests {
        for (name, _) in &request.capture {
            match variables.iter().find(|variable| variable.name == *name).map(|variable| &variable.law) {
                None => variables
                    .push(Variable { name: name.clone(), law: VariableLaw::Captured(BEFORE_USUAL.into()) }),
                Some(VariableLaw::Captured(_)) => {}
                Some(_) => {
                    reader.refuse_plainly(place.clone(), WrongRequest::CapturedDrawn(name.clone()).into());
                }
            }
        }
    }
    for variable in &variables {
        let is_captured = requests
            .iter()
            .any(|(request, _)| request.capture.iter().any(|(name, _)| *name == variable.name));
        if matches!(variable.law, VariableLaw::Captured(_)) && !is_captured {
            let place = place_of(reader, keys, &variable.name);
            reader.refuse_plainly(place, WrongRequest::NeverCaptured(variable.name.clone()).into());
        }
    }
    for (request, place) in requests {
        for wrong in strange_names(request, &variables) {
            reader.refuse_plainly(place.clone(), wrong.into());
        }
    }
    variables
}

fn law(reader: &mut Reader, name: &str, written: &Spanned<NameOr<VariableKeys>>) -> Option<VariableLaw> {
    let place = place(reader, written);
    if let Err(wrong) = http::variable_name(name) {
        reader.refuse_plainly(place, wrong.into());
        return None;
    }
    let wrong_law = WrongRequest::VariableLaw(name.to_owned());
    let keys = match &written.value {
        NameOr::Name(text) if text.value.trim() == "counter" => return Some(VariableLaw::Counter),
        NameOr::Name(_) => {
            reader.refuse_plainly(place, wrong_law.into());
            return None;
        }
        NameOr::Keys(keys) => keys,
    };
    match (&keys.from, &keys.to, &keys.one_of, &keys.before) {
        (Some(from), Some(to), None, None) => {
            let (from, to_said) = (reader.in_file(FROM, from), reader.in_file(TO, to));
            let (from, to) = (reader.read(&from, whole)?, reader.read(&to_said, whole)?);
            if from > to {
                reader.refuse(&to_said, UnitError::EmptyRange(format!("{from}..{to}")).into());
                return None;
            }
            Some(VariableLaw::Whole(from, to))
        }
        (None, None, Some(words), None) => {
            if words.is_empty() {
                reader.refuse_plainly(place, wrong_law.into());
                return None;
            }
            let said: Vec<_> = words.iter().map(|text| reader.in_file(ONE_OF, text)).collect();
            let words: Vec<String> =
                said.iter().filter_map(|said| reader.read(said, |text| sendable(name, text))).collect();
            (words.len() == said.len()).then_some(VariableLaw::OneOf(words))
        }
        (None, None, None, Some(before)) => {
            let said = reader.in_file(BEFORE, before);
            reader.read(&said, |text| sendable(name, text)).map(VariableLaw::Captured)
        }
        _ => {
            reader.refuse_plainly(place, wrong_law.into());
            None
        }
    }
}

fn whole(text: &str) -> Result<i64, UnitError> {
    let text = text.trim();
    match text.parse::<i64>() {
        Ok(value) => Ok(value),
        Err(_) if text.is_empty() => Err(UnitError::Empty),
        Err(_) if text.parse::<f64>().is_ok_and(f64::is_finite) => Err(UnitError::NotWhole(text.into())),
        Err(_) => Err(UnitError::NotANumber(text.into())),
    }
}

/// A line end in a header would begin another one.
fn sendable(name: &str, text: &str) -> Result<String, WrongRequest> {
    if text.contains(char::is_control) {
        return Err(WrongRequest::ControlInVariable(name.to_owned()));
    }
    Ok(text.to_owned())
}

/// Names in braces that are no variables, and texts that would break the path.
fn strange_names(request: &HttpRequest, variables: &[Variable]) -> Vec<WrongRequest> {
    let mut strange = Vec::new();
    let known = |name: &str| variables.iter().find(|variable| variable.name == name);
    let unknown = |name: &str| WrongRequest::UnknownVariable {
        name: name.to_owned(),
        known: match variables {
            [] => "none".into(),
            _ => variables.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", "),
        },
    };
    for text in [&request.path, &request.body] {
        for (name, is_environment) in http::braced(text) {
            if is_environment {
                strange.push(WrongRequest::EnvironmentOutsideHeaders(name.to_owned()));
            } else if known(name).is_none() {
                strange.push(unknown(name));
            }
        }
    }
    for (_, value) in &request.headers {
        let names = http::braced(value).filter(|(_, is_environment)| !is_environment);
        strange.extend(names.filter(|(name, _)| known(name).is_none()).map(|(name, _)| unknown(name)));
    }
    for (name, _) in http::braced(&request.path) {
        let texts = match known(name).map(|variable| &variable.law) {
            Some(VariableLaw::OneOf(words)) => words.as_slice(),
            Some(VariableLaw::Captured(before)) => std::slice::from_ref(before),
            Some(VariableLaw::Whole(..) | VariableLaw::Counter) | None => &[],
        };
        if let Some(text) = texts.iter().find(|text| !http::fits_in_path(text)) {
            strange.push(WrongRequest::NotForPath { name: name.to_owned(), text: text.clone() });
        }
    }
    strange.dedup();
    strange
}

fn place(reader: &Reader, written: &Spanned<NameOr<VariableKeys>>) -> Place {
    let whole = Text { value: String::new(), referenced: written.referenced, defined: written.defined };
    reader.in_file(VARIABLES, &whole).place
}

fn place_of(reader: &Reader, keys: &BotsKeys, name: &str) -> Place {
    let written = keys.variables.iter().flatten().find(|(key, _)| *key == name);
    written.map_or_else(|| reader.in_whole_file(VARIABLES).place, |(_, written)| place(reader, written))
}

/// The first variable, for bots that have none.
pub(super) fn said(reader: &Reader, keys: &BotsKeys) -> Option<(Setting, Place)> {
    let (_, first) = keys.variables.iter().flatten().next()?;
    Some((VARIABLES, place(reader, first)))
}
