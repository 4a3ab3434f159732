// One HTML with everything inside: the viewer embeds it, a report carries it, and a browser opens it from file://.
import { defineConfig, type Plugin } from 'vite'
import { viteSingleFile } from 'vite-plugin-singlefile'

/**
 * uPlot asks Intl for a number format and a time zone while it loads; that is the first use of Intl in the page and took
 * 27 to 214 ms before anything was painted. Every axis here writes its own numbers, and none shows a calendar.
 */
function withoutIntl(): Plugin {
  const asked: [string, string][] = [
    ["new Intl.NumberFormat(domEnv ? nav.language : 'en-US')", '{ format: String }'],
    ['new Intl.DateTimeFormat().resolvedOptions().timeZone', "'UTC'"],
  ]
  return {
    name: 'uplot-without-intl',
    enforce: 'pre',
    transform(code, id) {
      if (!id.includes('uPlot.esm.js')) return null
      for (const [from, to] of asked) {
        if (!code.includes(from)) this.error(`uPlot no longer says ${from}; look whether it still asks Intl while it loads`)
        code = code.replace(from, to)
      }
      return { code, map: null }
    },
  }
}

export default defineConfig({
  plugins: [withoutIntl(), viteSingleFile()],
  build: {
    target: 'es2022', cssTarget: ['chrome123', 'firefox121', 'safari17.5'], modulePreload: { polyfill: false }, reportCompressedSize: false,
  },
  // `npm run dev` shows what a viewer serves; `node e2e/server.mjs` serves planted runs on this port.
  server: { proxy: { '/api': process.env.STEPLADDER ?? 'http://127.0.0.1:42099' } },
})
