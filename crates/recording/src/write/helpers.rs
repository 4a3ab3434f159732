//! The functions that a bot needs besides, each written only where it is used.

/// A function of a bot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Helper {
    Decoder,
    Text,
    Json,
    Words,
    Bytes,
    Cookie,
    Between,
    Pick,
}

impl Helper {
    /// What it needs itself.
    pub(super) fn needs(self) -> Option<Helper> {
        match self {
            Helper::Json | Helper::Words => Some(Helper::Text),
            Helper::Text => Some(Helper::Decoder),
            _ => None,
        }
    }

    /// As TypeScript.
    pub(super) fn text(self) -> &'static str {
        match self {
            Helper::Decoder => "const decoder = new TextDecoder();\n",
            Helper::Text => {
                r#"/** A message as text. */
function text(data: any): string {
  return typeof data === "string" ? data : decoder.decode(data);
}
"#
            }
            Helper::Json => {
                r#"/** The JSON in a message, from its first bracket on; undefined where there is none. */
function json(data: any): any {
  const said = text(data);
  const start = said.search(/[[{]/);
  if (start < 0) return undefined;
  try {
    return JSON.parse(said.slice(start));
  } catch {
    return undefined;
  }
}
"#
            }
            Helper::Words => {
                r#"/** The words of a message. */
function words(data: any): string[] {
  return text(data).match(/[A-Za-z0-9_.-]+/g) ?? [];
}
"#
            }
            Helper::Bytes => {
                r#"/** Bytes from base64. */
function bytes(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}
"#
            }
            Helper::Cookie => {
                r#"/** The value of a cookie that an answer sets. */
function cookie(answer: Response, name: string): string {
  const line = answer.headers.getSetCookie().find((one) => one.startsWith(`${name}=`)) ?? "";
  return decodeURIComponent(line.slice(name.length + 1).split(";")[0]);
}
"#
            }
            Helper::Between => {
                r#"/** What stands in a text behind `before`, up to `after`. */
function between(text: string, before: string, after: string): string {
  const start = text.indexOf(before) + before.length;
  const end = after === "" ? text.length : text.indexOf(after, start);
  return text.slice(start, end);
}
"#
            }
            Helper::Pick => {
                r#"/** One of them, by chance. */
function pick<One>(list: One[]): One {
  return list[Math.floor(Math.random() * list.length)];
}
"#
            }
        }
    }
}
