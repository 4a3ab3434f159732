// How figures are written: three digits that matter and the unit that fits, as on the terminal (ladder's wording).
// Units in: ns, shares in [0, 1], bytes. What may not be stated is `—`; the reason is told where it is shown.

import type { LoadUnit } from './data'

export const NOT_STATED = '—'

const NARROW_SPACE = '\u202f'

export function digits(value: number): string {
  const size = Math.abs(value)
  const text = value.toFixed(size < 9.995 ? 2 : size < 99.95 ? 1 : 0)
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text
}

type Maybe = number | null | undefined

function stated(value: Maybe): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

/** `17.3 ms` */
export function ns(value: Maybe): string {
  if (!stated(value)) return NOT_STATED
  const size = Math.abs(value)
  if (size < 999.5) return `${value.toFixed(0)} ns`
  if (size < 999_500) return `${digits(value / 1e3)} µs`
  if (size < 999_500_000) return `${digits(value / 1e6)} ms`
  return size < 120e9 ? `${digits(value / 1e9)} s` : long(Math.round(value / 1e9))
}

/** Whole seconds, two minutes or more: `3 m 20 s`, `1 h 2 m` */
function long(seconds: number): string {
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60]
  return hours > 0 ? `${hours} h ${minutes} m` : `${minutes} m ${seconds % 60} s`
}

/** How long something takes or is still to take, to the second. */
export function duration(seconds: Maybe): string {
  return ns(stated(seconds) ? Math.max(0, Math.round(seconds)) * 1e9 : null).replace(/^0 ns$/, '0 s')
}

/** `31.2 %`; what is not nothing never reads as nothing, and what is not all never reads as all. */
export function share(value: Maybe): string {
  if (!stated(value)) return NOT_STATED
  const percent = value * 100
  if (percent > 0 && percent < 0.01) return '< 0.01 %'
  if (percent < 100 && percent > 99.99) return '> 99.99 %'
  if (percent >= 99.95 && percent < 100) return `${percent.toFixed(2)} %`
  return `${digits(percent)} %`
}

/** What a load counts, as people read it: `in flight`. */
export function unitText(unit: LoadUnit): string {
  return unit.replace('_', ' ')
}

/** `40.4 M`, `96 081`, `0.85` */
export function number(value: Maybe): string {
  if (!stated(value)) return NOT_STATED
  if (Math.abs(value) >= 999_500) return (Math.abs(value) < 999_500_000 ? `${digits(value / 1e6)} M` : `${digits(value / 1e9)} G`).replace('-', '−')
  if (!Number.isInteger(value)) return Math.abs(value) >= 1000 ? grouped(Math.round(value)) : digits(value)
  return grouped(value)
}

function grouped(value: number): string {
  const text = Math.abs(value).toFixed(0)
  const shown = text.length < 5 ? text : text.replace(/\B(?=(\d{3})+$)/g, NARROW_SPACE)
  return value < 0 ? `−${shown}` : shown
}

export function perSecond(value: Maybe): string {
  return stated(value) ? `${number(Math.abs(value) >= 100 ? Math.round(value) : value)}/s` : NOT_STATED
}

/** `213 MB`, powers of 1000 as on the terminal */
export function bytes(value: Maybe): string {
  if (!stated(value)) return NOT_STATED
  const size = Math.abs(value)
  if (size < 999.5) return `${value.toFixed(0)} B`
  if (size < 999_500) return `${digits(value / 1e3)} kB`
  if (size < 999_500_000) return `${digits(value / 1e6)} MB`
  return `${digits(value / 1e9)} GB`
}

/** Whole seconds as `4:07` or `1:02:03`. */
export function clock(seconds: Maybe): string {
  if (!stated(seconds)) return NOT_STATED
  const whole = Math.max(0, Math.round(seconds))
  const two = (part: number) => String(part).padStart(2, '0')
  const hours = Math.floor(whole / 3600)
  return hours > 0
    ? `${hours}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`
    : `${Math.floor(whole / 60)}:${two(whole % 60)}`
}

/** Writes a figure in its unit: `ns`, `share`, `count`, `per_s`, `bytes`, `number`. */
export function inUnit(unit: string): (value: Maybe) => string {
  switch (unit) {
    case 'ns': return ns
    case 'share': return share
    case 'per_s': return perSecond
    case 'bytes': return bytes
    case 'bytes_per_s': return value => stated(value) ? `${bytes(value)}/s` : NOT_STATED
    case 'cores': return value => stated(value) ? `${value.toFixed(2)} cores` : NOT_STATED
    case 'ms': return value => stated(value) ? `${digits(value)} ms` : NOT_STATED
    default: return number
  }
}

/** When a run began, in UTC: a report that is sent to another zone shows the same time. Every page says the zone once. */
export function when(unixMs: number): string {
  return new Date(unixMs).toISOString().slice(0, 16).replace('T', ' ')
}

/** `0.5` → `50 %`, `0.999` → `99.9 %` */
export function quantile(q: number): string {
  return `${Number((q * 100).toFixed(6))} %`
}

/** `0.51`, and of what is far below 1 two digits that matter: `0.067` */
export function ratio(value: Maybe): string {
  if (!stated(value)) return NOT_STATED
  return Math.abs(value) < 0.1 ? String(Number(value.toPrecision(2))) : digits(value)
}

/** On an axis, whose title names cores; nought of a time or of bytes has no unit of its own. */
export function onAxis(unit: string): (value: number) => string {
  if (unit === 'cores') return digits
  return value => value === 0 && /^(ns|bytes)/.test(unit) ? '0' : inUnit(unit)(value)
}

/** Quantities that are compared: `+12 %`, `×3.1`, `=`; nothing where one of them is unknown. */
export function change(from: Maybe, to: Maybe): string {
  if (!stated(from) || !stated(to)) return ''
  if (from === to) return '='
  if (from === 0) return ''
  const ratio = to / from
  if (ratio >= 2) return `×${digits(ratio)}`
  const percent = (ratio - 1) * 100
  return `${percent < 0 ? '−' : '+'}${digits(Math.abs(percent))} %`
}
