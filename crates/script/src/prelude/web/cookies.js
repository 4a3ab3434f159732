// A cookie jar per bot, made with the first Set-Cookie. Source: RFC 6265, sections 5.1 to 5.4.
// There is no list of public suffixes: a load test talks to one server. Loopback counts as secure, as in browsers, because a
// server under test is often one without TLS that sets Secure cookies all the same.
(host, own) => {
  "use strict";
  const { Date } = globalThis;
  const COOKIES_MAX = 200;
  const COOKIE_CHARACTERS_MAX = 4096;

  const parts = (url) => {
    const [, scheme, authority, path] = /^(https?):\/\/(?:[^/?#@]*@)?([^/?#]*)([^?#]*)/i.exec(url) ?? [];
    const name = (authority ?? "").replace(/:\d*$/, "").toLowerCase();
    const isLoopback = name === "localhost" || name.endsWith(".localhost") || name === "[::1]" || /^127(\.\d+){3}$/.test(name);
    return { name, path: path || "/", isSecure: scheme === "https" || isLoopback };
  };
  const isAddress = (name) => name.startsWith("[") || /^\d+(\.\d+){3}$/.test(name);
  const matchesDomain = (name, domain) => name === domain || (name.endsWith(`.${domain}`) && !isAddress(name));
  const matchesPath = (path, under) => path === under || (path.startsWith(under) && (under.endsWith("/") || path[under.length] === "/"));

  /** Keeps what one Set-Cookie says. */
  own.setCookie = (bot, url, line) => {
    const [pair, ...attributes] = line.split(";");
    const at = pair.indexOf("=");
    const name = at < 0 ? "" : pair.slice(0, at).trim();
    const value = pair.slice(at + 1).trim();
    if ((name === "" && value === "") || name.length + value.length > COOKIE_CHARACTERS_MAX || /[\0-\x08\x0a-\x1f\x7f]/.test(pair)) return;
    const where = parts(url);
    const cookie = { name, value, domain: where.name, isHostOnly: true, path: undefined, isSecure: false, until: Infinity };
    let maxAge, expires;
    for (const attribute of attributes) {
      const equals = attribute.indexOf("=");
      const key = (equals < 0 ? attribute : attribute.slice(0, equals)).trim().toLowerCase();
      const text = equals < 0 ? "" : attribute.slice(equals + 1).trim();
      if (key === "domain" && text !== "") {
        cookie.domain = text.replace(/^\./, "").toLowerCase();
        cookie.isHostOnly = false;
      } else if (key === "path") cookie.path = text.startsWith("/") ? text : undefined;
      else if (key === "secure") cookie.isSecure = true;
      else if (key === "max-age" && /^-?\d+$/.test(text)) maxAge = Number(text);
      else if (key === "expires" && !Number.isNaN(Date.parse(text.replace(/-/g, " ")))) expires = Date.parse(text.replace(/-/g, " "));
    }
    if (!cookie.isHostOnly && !matchesDomain(where.name, cookie.domain)) return;
    if (cookie.isSecure && !where.isSecure) return;
    if (name.startsWith("__Secure-") && !cookie.isSecure) return;
    if (name.startsWith("__Host-") && (!cookie.isSecure || !cookie.isHostOnly || cookie.path !== "/")) return;
    cookie.path ??= where.path.lastIndexOf("/") <= 0 ? "/" : where.path.slice(0, where.path.lastIndexOf("/"));
    if (maxAge !== undefined) cookie.until = maxAge <= 0 ? -Infinity : Date.now() + maxAge * 1000;
    else if (expires !== undefined) cookie.until = expires;
    const key = `${cookie.domain};${cookie.path};${name}`;
    const jar = (bot.jar ??= new Map());
    if (cookie.until <= Date.now()) { jar.delete(key); return; }
    const earlier = jar.get(key);
    // One that is set again keeps its place.
    if (earlier !== undefined) Object.assign(earlier, cookie); else jar.set(key, cookie);
    if (jar.size > COOKIES_MAX) jar.delete(jar.keys().next().value);
  };

  /** The value of the header Cookie for an address of http or https; empty without one. */
  own.cookiesOf = (bot, url) => {
    if (bot.jar === null || bot.jar.size === 0) return "";
    const where = parts(url);
    const now = Date.now();
    const sent = [];
    for (const [key, cookie] of bot.jar) {
      if (cookie.until <= now) { bot.jar.delete(key); continue; }
      const isMeant = cookie.isHostOnly ? where.name === cookie.domain : matchesDomain(where.name, cookie.domain);
      if (isMeant && matchesPath(where.path, cookie.path) && (!cookie.isSecure || where.isSecure)) sent.push(cookie);
    }
    // Longer paths first; sort() is stable, so the older one goes before the younger.
    sent.sort((a, b) => b.path.length - a.path.length);
    return sent.map(({ name, value }) => (name === "" ? value : `${name}=${value}`)).join("; ");
  };
}
