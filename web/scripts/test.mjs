// Bundles test/*.test.ts with Vite (Node 20 does not read TypeScript by itself) and runs them with `node --test`.

import { spawnSync } from 'node:child_process'
import { readdirSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'vite'

const root = fileURLToPath(new URL('..', import.meta.url))
const input = readdirSync(`${root}/test`).filter(file => file.endsWith('.test.ts')).map(file => `${root}/test/${file}`)
rmSync(`${root}/.test`, { recursive: true, force: true })
await build({
  root, configFile: false, logLevel: 'warn',
  build: { ssr: true, outDir: '.test', minify: false, target: 'node20', rollupOptions: { input, output: { entryFileNames: '[name].mjs' } } },
})
const files = readdirSync(`${root}/.test`).filter(file => file.endsWith('.test.mjs')).map(file => `${root}/.test/${file}`)
process.exit(spawnSync(process.execPath, ['--test', ...files], { stdio: 'inherit' }).status ?? 1)
