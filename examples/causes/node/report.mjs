/** A report made in place: 40 ms in which the event loop does nothing else. */
export function renderReport() {
    const until = performance.now() + 40;
    let word = 1;
    while (performance.now() < until) word = Math.imul(word, 31) + 1;
    return word;
}
