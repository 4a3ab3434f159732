//! What the Web's interfaces need of the host: addresses, text, digests and requests.

use std::rc::Rc;

use ring::{digest, hmac};
use rquickjs::{Ctx, Exception, Function, Object, TypedArray};
use url::{Url, quirks};

use super::host::{Host, copied, pairs};
use crate::command::Command;

/// No script asks for more random bytes at once.
const RANDOM_BYTES_MAX: usize = 65_536;

/// Adds functions to the object that the prelude gets.
pub(super) fn functions<'js>(ctx: &Ctx<'js>, host: &Rc<Host>, all: &Object<'js>) -> rquickjs::Result<()> {
    all.set(
        "url",
        Function::new(ctx.clone(), |url: String, base: Option<String>| parsed(&url, base.as_deref()))?,
    )?;
    all.set(
        "urlWith",
        Function::new(ctx.clone(), |url: String, name: String, value: String| changed(&url, &name, &value))?,
    )?;
    all.set(
        "websocketUrl",
        Function::new(ctx.clone(), |url: String, target: String| websocket_url(&url, &target))?,
    )?;
    all.set(
        "encode",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, text: String| TypedArray::new(ctx, text.into_bytes()))?,
    )?;
    all.set(
        "decode",
        Function::new(ctx.clone(), |bytes: TypedArray<'js, u8>, is_fatal: bool| {
            let bytes = copied(&bytes);
            match String::from_utf8(bytes) {
                Ok(text) => Some(text),
                Err(_) if is_fatal => None,
                Err(error) => Some(String::from_utf8_lossy(error.as_bytes()).into_owned()),
            }
        })?,
    )?;
    all.set(
        "incomplete",
        Function::new(ctx.clone(), |bytes: TypedArray<'js, u8>| incomplete(&copied(&bytes)))?,
    )?;
    let random = host.clone();
    all.set(
        "randomBytes",
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, count: usize| {
            TypedArray::new(ctx, random.random_bytes(count.min(RANDOM_BYTES_MAX)))
        })?,
    )?;
    all.set("digest", Function::new(ctx.clone(), digest_of)?)?;
    all.set("hmac", Function::new(ctx.clone(), hmac_of)?)?;
    let requests = host.clone();
    all.set(
        "request",
        Function::new(
            ctx.clone(),
            move |request: u32,
                  method: String,
                  url: String,
                  headers: Vec<String>,
                  body: Option<TypedArray<'js, u8>>,
                  operation: String| {
                requests.push(Command::Request {
                    request,
                    method,
                    url,
                    headers: pairs(headers),
                    body: body.as_ref().map(copied).unwrap_or_default(),
                    operation,
                    planned_ns: requests.planned_ns(),
                });
            },
        )?,
    )?;
    let requests = host.clone();
    all.set(
        "cancel",
        Function::new(ctx.clone(), move |request: u32| requests.push(Command::Cancel { request }))?,
    )
}

/// An address and its parts as `URL` shows them, in the order of `NAMES` in web/url.js.
fn parsed(url: &str, base: Option<&str>) -> Option<Vec<String>> {
    let base = base.map(Url::parse).transpose().ok()?;
    // The standard skips further slashes before a host; the crate refuses them where there is a base.
    let rest = url.trim_start_matches(|letter: char| letter <= ' ').trim_start_matches(['/', '\\']);
    let is_special =
        base.as_ref().is_some_and(|base| matches!(base.scheme(), "http" | "https" | "ws" | "wss"));
    let slashes = url.len() - rest.len();
    let shortened = (is_special && slashes > 2 && !url.starts_with(' ')).then(|| format!("//{rest}"));
    let url = shortened.as_deref().unwrap_or(url);
    Url::options().base_url(base.as_ref()).parse(url).ok().map(|url| parts(&url))
}

fn parts(url: &Url) -> Vec<String> {
    [
        quirks::href(url),
        &quirks::origin(url),
        quirks::protocol(url),
        quirks::username(url),
        quirks::password(url),
        quirks::host(url),
        quirks::hostname(url),
        quirks::port(url),
        quirks::pathname(url),
        quirks::search(url),
        quirks::hash(url),
    ]
    .map(str::to_owned)
    .into()
}

/// The address with one part set; `None`: the value is refused, and the address stays as it is.
fn changed(url: &str, name: &str, value: &str) -> Option<Vec<String>> {
    let mut url = Url::parse(url).ok()?;
    match name {
        "href" => quirks::set_href(&mut url, value).ok()?,
        "protocol" => quirks::set_protocol(&mut url, value).ok()?,
        "username" => quirks::set_username(&mut url, value).ok()?,
        "password" => quirks::set_password(&mut url, value).ok()?,
        "host" => quirks::set_host(&mut url, value).ok()?,
        "hostname" => quirks::set_hostname(&mut url, value).ok()?,
        "port" => quirks::set_port(&mut url, value).ok()?,
        "pathname" => quirks::set_pathname(&mut url, value),
        "search" => quirks::set_search(&mut url, value),
        "hash" => quirks::set_hash(&mut url, value),
        _ => return None,
    }
    Some(parts(&url))
}

/// An address as `new WebSocket` takes it, whole: what is relative is seen from the target, and nothing means the target.
fn websocket_url(url: &str, target: &str) -> Option<String> {
    if url.is_empty() {
        return Some(target.to_owned());
    }
    let base = Url::parse(target).ok();
    let mut url = Url::options().base_url(base.as_ref()).parse(url).ok()?;
    let scheme = match url.scheme() {
        "ws" | "http" => "ws",
        "wss" | "https" => "wss",
        _ => return None,
    };
    url.set_scheme(scheme).ok()?;
    url.fragment().is_none().then(|| url.into())
}

/// Bytes at the end that may be the beginning of a character whose rest follows.
fn incomplete(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    loop {
        match std::str::from_utf8(rest) {
            Ok(_) => return 0,
            Err(error) => match error.error_len() {
                None => return rest.len() - error.valid_up_to(),
                Some(wrong) => rest = &rest[error.valid_up_to() + wrong..],
            },
        }
    }
}

fn digest_of<'js>(
    ctx: Ctx<'js>,
    name: String,
    data: TypedArray<'js, u8>,
) -> rquickjs::Result<TypedArray<'js, u8>> {
    let algorithm = match name.as_str() {
        // Old protocols ask for it; the WebSocket handshake is one.
        "SHA-1" => &digest::SHA1_FOR_LEGACY_USE_ONLY,
        "SHA-256" => &digest::SHA256,
        "SHA-384" => &digest::SHA384,
        "SHA-512" => &digest::SHA512,
        _ => return Err(Exception::throw_type(&ctx, "no such digest")),
    };
    TypedArray::new(ctx, digest::digest(algorithm, &copied(&data)).as_ref())
}

fn hmac_of<'js>(
    ctx: Ctx<'js>,
    name: String,
    key: TypedArray<'js, u8>,
    data: TypedArray<'js, u8>,
) -> rquickjs::Result<TypedArray<'js, u8>> {
    let algorithm = match name.as_str() {
        "SHA-1" => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
        "SHA-256" => hmac::HMAC_SHA256,
        "SHA-384" => hmac::HMAC_SHA384,
        "SHA-512" => hmac::HMAC_SHA512,
        _ => return Err(Exception::throw_type(&ctx, "no such digest")),
    };
    let key = hmac::Key::new(algorithm, &copied(&key));
    TypedArray::new(ctx, hmac::sign(&key, &copied(&data)).as_ref())
}
