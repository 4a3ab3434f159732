//! The operation that a `fetch` in a script's text counts as, as far as the text says it.
//!
//! While it runs a request has its method and its path with `:id` for what is a number; what is computed in the text stands
//! for the same here. A name that only shows at run time counts as `fetch`.

use oxc_ast::ast::{Argument, BinaryOperator, Expression, ObjectPropertyKind, PropertyKey};

const COMPUTED: &str = ":id";

/// From the arguments of a call; `None`: the text does not say it.
pub(super) fn operation(arguments: &[Argument<'_>]) -> Option<String> {
    let init = match arguments.get(1).and_then(Argument::as_expression) {
        Some(Expression::ObjectExpression(init)) => Some(init),
        Some(_) => return None,
        None => None,
    };
    let said = |name: &str| {
        init?.properties.iter().find_map(|property| match property {
            ObjectPropertyKind::ObjectProperty(property) => {
                matches!(&property.key, PropertyKey::StaticIdentifier(key) if key.name == name)
                    .then_some(&property.value)
            }
            ObjectPropertyKind::SpreadProperty(_) => None,
        })
    };
    if let Some(operation) = said("operation") {
        let Expression::StringLiteral(name) = operation else { return None };
        return Some(name.value.to_string());
    }
    let method = match said("method") {
        None => "GET".to_owned(),
        Some(Expression::StringLiteral(method)) => method.value.to_uppercase(),
        Some(_) => return None,
    };
    let mut url = String::new();
    write(arguments.first()?.as_expression()?, &mut url)?;
    Some(format!("{method} {}", path_of(&url)?))
}

/// The text of an address, with `:id` for what is computed.
fn write(address: &Expression<'_>, out: &mut String) -> Option<()> {
    match address {
        Expression::StringLiteral(text) => out.push_str(&text.value),
        Expression::TemplateLiteral(template) => {
            for (at, part) in template.quasis.iter().enumerate() {
                if at > 0 {
                    out.push_str(COMPUTED);
                }
                out.push_str(part.value.cooked.as_ref().unwrap_or(&part.value.raw));
            }
        }
        Expression::BinaryExpression(sum) if sum.operator == BinaryOperator::Addition => {
            write(&sum.left, out)?;
            write(&sum.right, out)?;
        }
        _ => out.push_str(COMPUTED),
    }
    Some(())
}

/// The path of an address, whose beginning may be computed.
fn path_of(url: &str) -> Option<String> {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let path = match url.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => url.strip_prefix(COMPUTED).unwrap_or(url),
    };
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = path
        .split('/')
        .map(|part| if is_number(part) || part.contains(COMPUTED) { COMPUTED } else { part })
        .collect();
    path.starts_with('/').then(|| parts.join("/"))
}
