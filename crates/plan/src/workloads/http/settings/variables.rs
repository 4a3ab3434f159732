//! Variables for changing text: drawn, counted, or captured from answers.

use super::{PART_BYTES_MAX, REQUEST};
use crate::layers::reader::Reader;
use crate::mistakes::{Place, RequestConfigError};
use crate::scenario::{Content, Node};
use crate::settings::{Setting, Shape};
use crate::units::{UnitError, http};
use crate::workloads::{HttpRequest, Variable, VariableLaw};

/// Of one variable; it is refused with all of them for other bots.
const ENTRY: Setting = Setting::of("", &[]).at_most(PART_BYTES_MAX);

settings! { pub(super) SETTINGS;
    VARIABLES = REQUEST
        .key("bots.variables", Shape::Map(&Shape::WordOr("VariableKeys", "What a variable stands for, anew for each request.")), "{ user: { from: 1, to: 1000 } }")
        .about("http: what {name} stands for in paths, header values and bodies.");
    FROM = ENTRY.key("bots.variables.from", Shape::Whole("int64"), "1")
        .about("The lowest of whole numbers, all equally likely.");
    TO = ENTRY.key("bots.variables.to", Shape::Whole("int64"), "1000").about("The highest of them.");
    ONE_OF = ENTRY.key("bots.variables.one_of", Shape::List(&Shape::NumberOrText), "[red, green]")
        .about("One of these, all equally likely.");
    BEFORE = ENTRY.key("bots.variables.before", Shape::NumberOrText, "1")
        .about("A captured variable: what stands there before the first answer; 0 otherwise.");
}

/// The default value of a captured variable before the first answer.
const BEFORE_USUAL: &str = "0";

/// The variables of the plan, and whether the requests use no others.
pub(crate) fn read(reader: &mut Reader, requests: &[(HttpRequest, Place)]) -> Vec<Variable> {
    let mut variables = Vec::new();
    let all = reader.file.at(VARIABLES.key).cloned().unwrap_or_default();
    for (name, written) in all.by_name() {
        let law = law(reader, name, written);
        variables.extend(law.map(|law| Variable { name: name.to_owned(), law }));
    }
    for (request, place) in requests {
        for (name, _) in &request.capture {
            match variables.iter().find(|variable| variable.name == *name).map(|variable| &variable.law) {
                None => variables
                    .push(Variable { name: name.clone(), law: VariableLaw::Captured(BEFORE_USUAL.into()) }),
                Some(VariableLaw::Captured(_)) => {}
                Some(_) => {
                    reader.refuse_plainly(place.clone(), RequestConfigError::CapturedDrawn(name.clone()));
                }
            }
        }
    }
    for variable in &variables {
        let is_captured = requests
            .iter()
            .any(|(request, _)| request.capture.iter().any(|(name, _)| *name == variable.name));
        if matches!(variable.law, VariableLaw::Captured(_)) && !is_captured {
            let written = all.get(&variable.name).cloned().unwrap_or_default();
            let place = reader.at(&VARIABLES, &written).place;
            reader.refuse_plainly(place, RequestConfigError::NeverCaptured(variable.name.clone()));
        }
    }
    for (request, place) in requests {
        for wrong in strange_names(request, &variables) {
            reader.refuse_plainly(place.clone(), wrong);
        }
    }
    variables
}

fn law(reader: &mut Reader, name: &str, written: &Node) -> Option<VariableLaw> {
    let place = reader.at(&VARIABLES, written).place;
    if let Err(wrong) = http::variable_name(name) {
        reader.refuse_plainly(place, wrong);
        return None;
    }
    let said = |setting: &Setting| reader.inside(written, setting);
    match (&written.content, said(&FROM), said(&TO), said(&ONE_OF), said(&BEFORE)) {
        (Content::One(text, _), ..) if text.trim() == "counter" => Some(VariableLaw::Counter),
        (Content::Map(_), Some(from), Some(to), None, None) => {
            let (from, to_said) = (&from[0], &to[0]);
            let (from, to) = (reader.read(from, whole)?, reader.read(to_said, whole)?);
            if from > to {
                reader.refuse(to_said, UnitError::EmptyRange(format!("{from}..{to}")).into());
                return None;
            }
            Some(VariableLaw::Whole(from, to))
        }
        (Content::Map(_), None, None, Some(said), None) if !said.is_empty() => {
            let words = reader.read_all(&said, |text| sendable(name, text));
            (words.len() == said.len()).then_some(VariableLaw::OneOf(words))
        }
        (Content::Map(_), None, None, None, Some(before)) => {
            reader.read(&before[0], |text| sendable(name, text)).map(VariableLaw::Captured)
        }
        _ => {
            reader.refuse_plainly(place, RequestConfigError::VariableLaw(name.to_owned()));
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
fn sendable(name: &str, text: &str) -> Result<String, RequestConfigError> {
    if text.contains(char::is_control) {
        return Err(RequestConfigError::ControlInVariable(name.to_owned()));
    }
    Ok(text.to_owned())
}

/// Names in braces that are no variables, and texts that would break the path.
fn strange_names(request: &HttpRequest, variables: &[Variable]) -> Vec<RequestConfigError> {
    let mut strange = Vec::new();
    let known = |name: &str| variables.iter().find(|variable| variable.name == name);
    let unknown = |name: &str| RequestConfigError::UnknownVariable {
        name: name.to_owned(),
        known: match variables {
            [] => "none".into(),
            _ => variables.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", "),
        },
    };
    for text in [&request.path, &request.body] {
        let names = http::braced(text).filter(|(_, is_environment)| !is_environment);
        strange.extend(names.filter(|(name, _)| known(name).is_none()).map(|(name, _)| unknown(name)));
    }
    for (_, value) in &request.headers {
        let names = http::braced(value).filter(|(_, is_environment)| !is_environment);
        strange.extend(names.filter(|(name, _)| known(name).is_none()).map(|(name, _)| unknown(name)));
    }
    for (name, _) in http::braced(&request.path).filter(|(_, is_environment)| !is_environment) {
        let texts = match known(name).map(|variable| &variable.law) {
            Some(VariableLaw::OneOf(words)) => words.as_slice(),
            Some(VariableLaw::Captured(before)) => std::slice::from_ref(before),
            Some(VariableLaw::Whole(..) | VariableLaw::Counter) | None => &[],
        };
        if let Some(text) = texts.iter().find(|text| !http::fits_in_path(text)) {
            strange.push(RequestConfigError::NotForPath { name: name.to_owned(), text: text.clone() });
        }
    }
    strange.dedup();
    strange
}
