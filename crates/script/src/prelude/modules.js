// `require` of modules that hand out what they have by `module.exports`. One realm per worker, so each runs once for all bots.
(host) => {
  "use strict";
  const known = new Map();
  const load = (name) => {
    const before = known.get(name);
    // One that asks for itself in a circle gets what is there so far.
    if (before !== undefined) return before.exports;
    const module = { exports: {}, id: name, filename: name, loaded: false, children: [], paths: [] };
    known.set(name, module);
    const require = (specifier) => load(host.resolve(name, String(specifier)));
    require.cache = {};
    try {
      const folder = name.includes("/") ? name.slice(0, name.lastIndexOf("/")) : ".";
      host.compile(name).call(module.exports, module.exports, require, module, name, folder);
    } catch (error) {
      known.delete(name);
      throw error;
    }
    module.loaded = true;
    return module.exports;
  };
  return load;
}
