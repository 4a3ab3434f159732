//! The Web's interfaces, as their standards have them. Each row is an expression and what `JSON.stringify` makes of it.

use super::*;

/// Evaluates each expression in one bot; what it throws is told as `!` and the error's name.
fn check(rows: &[(&str, &str)]) {
    let mut text = "export default async (bot) => {\n".to_owned();
    for (expression, _) in rows {
        text.push_str(&format!(
            "try {{ bot.fail(JSON.stringify(await (async () => {expression})())); }} catch (e) {{ bot.fail('!' + e.name); }}\n"
        ));
    }
    text.push_str("};\n");
    let mut script = played(&text);
    script.start(0, 0, 5_000_000);
    let said: Vec<String> = commands(&mut script)
        .into_iter()
        .filter_map(|command| match command {
            Command::Failed(words) => Some(words),
            Command::Threw(words) => Some(format!("threw {words}")),
            _ => None,
        })
        .collect();
    for ((expression, expected), said) in rows.iter().zip(&said) {
        assert_eq!(said, expected, "{expression}");
    }
    assert_eq!(said.len(), rows.len(), "{said:?}");
}

#[test]
fn addresses_are_read_changed_and_written_as_the_standard_has_them() {
    check(&[
        ("new URL('../x?y#z', 'http://u:p@H.test:80/a/b/c').href", r#""http://u:p@h.test/a/x?y#z""#),
        ("new URL('/api', 'ws://127.0.0.1:8080/play?a=1').href", r#""ws://127.0.0.1:8080/api""#),
        ("new URL('////x/y', 'http://h/').href", r#""http://x/y""#),
        ("new URL('nonsense')", "!TypeError"),
        ("[URL.canParse('//x'), URL.canParse('//x', 'http://h')]", "[false,true]"),
        (
            "(() => { const u = new URL('http://h/p?a=1&b=2#f'); u.searchParams.append('c', 'é &'); u.searchParams.delete('a'); return u.href; })()",
            r##""http://h/p?b=2&c=%C3%A9+%26#f""##,
        ),
        (
            "(() => { const u = new URL('http://h/'); const p = u.searchParams; u.search = '?x=1&x=2'; return [p.getAll('x'), u.searchParams === p]; })()",
            r#"[["1","2"],true]"#,
        ),
        (
            "(() => { const u = new URL('http://h:8080/'); u.port = 'x'; u.port = '443'; u.protocol = 'https'; return u.href; })()",
            r#""https://h/""#,
        ),
        ("(() => { const u = new URL('http://h/'); u.href = 'no'; })()", "!TypeError"),
        ("`${new URLSearchParams({ a: 1, b: 'x y', __proto__: null })}`", r#""a=1&b=x+y""#),
        ("[...new URLSearchParams('?%41=%zz&é=+&&a')]", r#"[["A","%zz"],["é"," "],["a",""]]"#),
        ("`${new URLSearchParams(\"a=~'()!*-_.\")}`", r#""a=%7E%27%28%29%21*-_.""#),
        (
            "(() => { const p = new URLSearchParams('b=1&a=2&b=0'); p.sort(); return [`${p}`, p.size, p.has('b', '0'), p.has('b', '3')]; })()",
            r#"["a=2&b=1&b=0",3,true,false]"#,
        ),
        ("new URLSearchParams([['a']])", "!TypeError"),
    ]);
}

#[test]
fn events_reach_their_listeners_in_the_order_of_the_dom() {
    check(&[
        (
            "(() => { const t = new WebSocket('/a'); const log = []; t.addEventListener('x', () => log.push(1)); t.onopen = () => log.push('first'); \
           t.addEventListener('open', () => log.push('second')); t.onopen = () => log.push('replaced'); t.dispatchEvent(new Event('open')); \
           t.onopen = null; t.onopen = () => log.push('again'); t.dispatchEvent(new Event('open')); return log; })()",
            r#"["replaced","second","second","again"]"#,
        ),
        (
            "(() => { const t = new EventTarget(), log = []; const c = new AbortController(); t.addEventListener('x', () => log.push('signal'), { signal: c.signal }); \
           t.addEventListener('x', () => log.push('once'), { once: true }); t.dispatchEvent(new Event('x')); c.abort(); t.dispatchEvent(new Event('x')); return log; })()",
            r#"["signal","once"]"#,
        ),
        (
            "(() => { const t = new EventTarget(), log = []; const late = () => log.push('late'); t.addEventListener('x', () => { t.addEventListener('x', late); t.removeEventListener('x', gone); }); \
           const gone = () => log.push('gone'); t.addEventListener('x', gone); t.dispatchEvent(new Event('x')); return log; })()",
            "[]",
        ),
        ("new EventTarget().dispatchEvent({ type: 'x' })", "!TypeError"),
        (
            "(() => { const e = new MessageEvent('m', { data: { a: 1 }, lastEventId: 7 }); return [e.data, e.lastEventId, e.origin, e.isTrusted, e.timeStamp]; })()",
            r#"[{"a":1},"7","",false,5]"#,
        ),
        (
            "(() => { const s = AbortSignal.any([AbortSignal.abort('why')]); return [s.aborted, s.reason]; })()",
            r#"[true,"why"]"#,
        ),
        (
            "(() => { const c = new AbortController(), log = []; const any = AbortSignal.any([AbortSignal.any([c.signal]), c.signal]); any.onabort = () => log.push('any'); \
           c.signal.onabort = () => log.push('first', any.aborted); c.abort(); return [log, any.reason === c.signal.reason, any.reason.name]; })()",
            r#"[["first",true,"any"],true,"AbortError"]"#,
        ),
        ("new AbortSignal()", "!TypeError"),
        ("[WebSocket.OPEN, new WebSocket('/b').CLOSED, Event.AT_TARGET]", "[1,3,2]"),
    ]);
}

#[test]
fn text_is_encoded_and_decoded_with_its_errors() {
    check(&[
        ("[...new TextEncoder().encode('é\\ud800')]", "[195,169,239,191,189]"),
        (
            "(() => { const into = new Uint8Array(4); const r = new TextEncoder().encodeInto('aé€', into); return [r, [...into]]; })()",
            r#"[{"read":2,"written":3},[97,195,169,0]]"#,
        ),
        ("new TextDecoder().decode(new Uint8Array([0xef, 0xbb, 0xbf, 0x41, 0xff]))", r#""A�""#),
        (
            "new TextDecoder('utf-8', { ignoreBOM: true }).decode(new Uint8Array([0xef, 0xbb, 0xbf])).length",
            "1",
        ),
        ("new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([0xff]))", "!TypeError"),
        (
            "(() => { const d = new TextDecoder(); return [0xf0, 0x9f, 0x98, 0x80, 0xe2, 0x82].map((b) => d.decode(new Uint8Array([b]), { stream: true })).join('|') + d.decode(); })()",
            r#""|||😀||�""#,
        ),
        (
            "new TextDecoder('utf-16').decode(new Uint8Array([0xff, 0xfe, 0x3d, 0xd8, 0, 0xde, 0x41]))",
            r#""😀�""#,
        ),
        (
            "[new TextDecoder('latin1').encoding, new TextDecoder('latin1').decode(new Uint8Array([0xe9, 0x80]))]",
            r#"["windows-1252","é€"]"#,
        ),
        ("new TextDecoder('utf-16le').decode(new Uint8Array([0, 0xd8, 0])).length", "1"),
        ("new TextDecoder('shift_jis')", "!RangeError"),
        ("[atob(' YQ== '), btoa('é')]", r#"["a","6Q=="]"#),
        ("btoa('€')", "!InvalidCharacterError"),
    ]);
}

#[test]
fn a_clone_shares_nothing_and_refuses_what_cannot_be_cloned() {
    check(&[
        (
            "(() => { const a = { m: new Map([[1, new Set([new Date(5)])]]), b: new Uint8Array([1, 2]).subarray(1) }; a.self = a; const c = structuredClone(a); \
           return [c !== a, c.self === c, [...c.m.get(1)][0].getTime(), c.b[0], c.b.byteOffset, c.b.buffer !== a.b.buffer]; })()",
            "[true,true,5,2,1,true]",
        ),
        (
            "(() => { const c = structuredClone(JSON.parse('{\"__proto__\": {\"polluted\": 1}}')); return [{}.polluted === undefined, c.polluted === undefined, Object.keys(c)]; })()",
            r#"[true,true,["__proto__"]]"#,
        ),
        (
            "(() => { const e = structuredClone(new RangeError('r', { cause: [1] })); return [e instanceof RangeError, e.message, e.cause]; })()",
            r#"[true,"r",[1]]"#,
        ),
        ("structuredClone({ f() {} })", "!DataCloneError"),
        ("structuredClone(Symbol('s'))", "!DataCloneError"),
        ("structuredClone(Promise.resolve())", "!DataCloneError"),
        ("structuredClone(new Headers())", "!DataCloneError"),
        ("structuredClone(new Blob(['x'])).text()", r#""x""#),
        (
            "(() => { const a = new ArrayBuffer(3); const c = structuredClone([a], { transfer: [a] }); return [a.byteLength, c[0].byteLength]; })()",
            "[0,3]",
        ),
    ]);
}

#[test]
fn blobs_forms_and_headers_hold_what_was_put_in() {
    check(&[
        (
            "new Blob(['é', new Uint8Array([65]), new Blob(['b'])], { type: 'A/B' }).slice(-2).text()",
            r#""Ab""#,
        ),
        (
            "(() => { const bytes = new Uint8Array([65]); const b = new Blob([bytes]); bytes[0] = 66; return b.text(); })()",
            r#""A""#,
        ),
        ("new Blob('text')", "!TypeError"),
        (
            "(async () => { const log = []; for (const how of ['readAsText', 'readAsDataURL', 'readAsArrayBuffer']) { const r = new FileReader(); r[how](new Blob(['é'], { type: 'a/b' })); await new Promise((done) => r.onloadend = done); log.push(r.result.byteLength ?? r.result); } return log; })()",
            r#"["é","data:a/b;base64,w6k=",2]"#,
        ),
        ("new FileReader().readAsText('x')", "!TypeError"),
        (
            "(() => { const f = new FormData(); f.append('a', 1); f.append('a', 2); f.set('b', new Blob(['x'])); f.set('a', 3); return [[...f.keys()], f.get('a'), f.get('b').name]; })()",
            r#"[["a","b"],"3","blob"]"#,
        ),
        ("new FormData().append('a', 'text', 'name.txt')", "!TypeError"),
        (
            "(async () => { const f = new FormData(); f.append('a\"\\n', 'x\\ny'); f.append('f', new File(['q'], 'q.bin')); const r = new Request('http://h/', { method: 'POST', body: f }); \
           const b = /boundary=(.*)/.exec(r.headers.get('content-type'))[1]; return (await r.text()).replaceAll(b, 'B'); })()",
            r#""--B\r\nContent-Disposition: form-data; name=\"a%22%0D%0A\"\r\n\r\nx\r\ny\r\n--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"q.bin\"\r\nContent-Type: application/octet-stream\r\n\r\nq\r\n--B--\r\n""#,
        ),
        (
            "(() => { const h = new Headers({ b: ' 1\\t', A: 2 }); h.append('B', '3'); h.append('Set-Cookie', 'x=1'); h.append('set-cookie', 'y=2'); return [[...h], h.getSetCookie()]; })()",
            r#"[[["a","2"],["b","1, 3"],["set-cookie","x=1"],["set-cookie","y=2"]],["x=1","y=2"]]"#,
        ),
        ("new Headers({ a: 'x\\r\\ny: z' })", "!TypeError"),
        ("new Headers({ 'a b': '1' })", "!TypeError"),
        ("new Headers({ a: '€' })", "!TypeError"),
    ]);
}

#[test]
fn bodies_are_read_once_as_a_whole_or_as_a_stream() {
    check(&[
        (
            "(async () => { const r = new Response('\\ufeffé'); return [await r.text(), r.bodyUsed]; })()",
            r#"["é",true]"#,
        ),
        ("(async () => { const r = new Response('x'); await r.text(); return r.json(); })()", "!TypeError"),
        ("new Response('{').json()", "!SyntaxError"),
        (
            "(async () => { const r = Response.json([1], { status: 201 }); return [r.status, r.ok, r.headers.get('content-type'), await r.clone().json(), await r.json()]; })()",
            r#"[201,true,"application/json",[1],[1]]"#,
        ),
        (
            "(async () => { let all = ''; for await (const part of new Response('abc').body) all += part.length; return all; })()",
            r#""3""#,
        ),
        (
            "(async () => { const r = new Response('abc'); r.body.getReader(); return r.text(); })()",
            "!TypeError",
        ),
        (
            "(async () => { const s = new ReadableStream({ start(c) { c.enqueue(1); c.enqueue(2); c.close(); } }); const [a, b] = s.tee(); const all = []; \
           for await (const x of a) all.push(x); for await (const x of b) all.push(x); return all; })()",
            "[1,2,1,2]",
        ),
        (
            "(async () => { let why; const s = new ReadableStream({ pull(c) { c.enqueue(1); }, cancel(r) { why = 'cancelled'; } }); for await (const x of s) break; return [why, s.locked]; })()",
            r#"["cancelled",false]"#,
        ),
        (
            "(async () => { const s = new ReadableStream({ start(c) { c.error(new RangeError('r')); } }); return s.getReader().read(); })()",
            "!RangeError",
        ),
        (
            "(async () => { const f = await new Response(new URLSearchParams('a=1&a=%20')).formData(); return f.getAll('a'); })()",
            r#"["1"," "]"#,
        ),
        (
            "(async () => { const f = new FormData(); f.append('a\"', 'é\\r\\n'); f.append('e', ''); f.append('f', new File([new Uint8Array([255, 13, 10])], 'n.bin', { type: 'x/y' })); \
             const g = await new Request('http://h/', { method: 'POST', body: f }).formData(); const file = g.get('f'); \
             return [[...g.keys()], g.get('a\"'), g.get('e'), file.name, file.type, [...await file.bytes()]]; })()",
            r#"[["a\"","e","f"],"é\r\n","","n.bin","x/y",[255,13,10]]"#,
        ),
        (
            "new Response('--B\\r\\ncut', { headers: { 'content-type': 'multipart/form-data; boundary=B' } }).formData()",
            "!TypeError",
        ),
        (
            "new Response('x', { headers: { 'content-type': 'multipart/form-data' } }).formData()",
            "!TypeError",
        ),
        ("new Response('x', { status: 204 })", "!TypeError"),
        ("new Response('', { status: 700 })", "!RangeError"),
        ("new Request('http://h/', { body: 'x' })", "!TypeError"),
        ("new Request('http://u:p@h/')", "!TypeError"),
        ("new Request('file:///etc/passwd')", "!TypeError"),
        ("new Request('/path').url", r#""http://127.0.0.1:8080/path""#),
        ("new Request('http://h/', { method: 'trace' })", "!TypeError"),
    ]);
}

#[test]
fn digests_and_signatures_are_those_of_the_standard() {
    let hex =
        "const hex = (b) => Array.from(new Uint8Array(b), (x) => x.toString(16).padStart(2, '0')).join('')";
    let row = |expression: &str| format!("(async () => {{ {hex}; {expression} }})()");
    check(&[
        // FIPS 180-4, "abc".
        (
            &row("return hex(await crypto.subtle.digest('SHA-1', new TextEncoder().encode('abc')))"),
            r#""a9993e364706816aba3e25717850c26c9cd0d89d""#,
        ),
        (
            &row(
                "return hex(await crypto.subtle.digest({ name: 'sha-256' }, new TextEncoder().encode('abc')))",
            ),
            r#""ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad""#,
        ),
        // RFC 4231, test case 2.
        (
            &row(
                "const k = await crypto.subtle.importKey('raw', new TextEncoder().encode('Jefe'), { name: 'HMAC', hash: 'SHA-256' }, false, ['sign', 'verify']); \
               const d = new TextEncoder().encode('what do ya want for nothing?'); const s = await crypto.subtle.sign('HMAC', k, d); \
               return [hex(s), await crypto.subtle.verify('HMAC', k, s, d), await crypto.subtle.verify('HMAC', k, s, d.slice(1))]",
            ),
            r#"["5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",true,false]"#,
        ),
        ("crypto.subtle.digest('MD5', new Uint8Array(0))", "!NotSupportedError"),
        ("crypto.getRandomValues(new Uint8Array(65537))", "!QuotaExceededError"),
        ("crypto.getRandomValues(new Float32Array(1))", "!TypeMismatchError"),
        (
            "/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID())",
            "true",
        ),
    ]);
}

#[test]
fn the_realm_is_a_worker_and_no_browser_or_node() {
    check(&[
        (
            "[typeof window, typeof document, typeof require, typeof process.versions, typeof process.release, process.env.NODE_ENV]",
            r#"["undefined","undefined","undefined","undefined","undefined","production"]"#,
        ),
        (
            "[self === globalThis, global === globalThis, self instanceof WorkerGlobalScope, self.constructor.name]",
            r#"[true,true,true,"WorkerGlobalScope"]"#,
        ),
        ("Object.keys(globalThis)", "[]"),
        (
            "[typeof host, typeof own, Object.getOwnPropertyNames(new WebSocket('/')), Object.keys(bot)]",
            r#"["undefined","undefined",[],[]]"#,
        ),
        (
            "(() => { class D extends Date {} return [new D() instanceof D, new D(5).getTime(), new Date().getTime(), Date.length]; })()",
            "[true,5,5,7]",
        ),
        ("performance.mark('a').name + performance.now()", r#""a5""#),
        ("setTimeout('code')", "!TypeError"),
        (
            "(() => { URL = Headers = Event = ReadableStream = undefined; const r = new Request('/a', { headers: { a: 'b' }, method: 'POST', body: 'x' }); return [r.url, r.headers.get('a'), r.body.locked]; })()",
            r#"["http://127.0.0.1:8080/a","b",false]"#,
        ),
    ]);
}
