// One HTML with everything inside: the viewer embeds it, a report carries it, and a browser opens it from file://.
import { defineConfig } from 'vite'
import { viteSingleFile } from 'vite-plugin-singlefile'

export default defineConfig({
  plugins: [viteSingleFile()],
  build: {
    target: 'es2022', cssTarget: ['chrome123', 'firefox121', 'safari17.5'], modulePreload: { polyfill: false }, reportCompressedSize: false,
  },
  // `npm run dev` shows what a viewer serves; `node e2e/server.mjs` serves planted runs on this port.
  server: { proxy: { '/api': process.env.STEPLADDER ?? 'http://127.0.0.1:42099' } },
})
