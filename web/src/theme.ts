// Colours, from the style sheet's custom properties, so that charts and text change together between light and dark.

export type Colour =
  | 'ink' | 'muted' | 'line' | 'grid' | 'panel' | 'accent' | 'hold' | 'cut' | 'band'
  | 'pass' | 'fail' | 'limited' | 'unsure' | 'invalid'
  | 'c1' | 'c2' | 'c3' | 'c4' | 'c5' | 'c6' | 'c7' | 'c8'
  | 's0' | 's1' | 's2' | 's3' | 's4' | 's5' | 's6' | 's7'

const KEY = 'stepladder-theme'
const listeners = new Set<() => void>()
const known = new Map<string, string>()

export function colour(name: Colour): string {
  let value = known.get(name)
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()
    known.set(name, value)
  }
  return value
}

/** Of the n-th of several that are compared. */
export function nth(index: number): Colour {
  return `c${(index % 8) + 1}` as Colour
}

/** Of the n-th of `count` in an order, such as loads: the further up, the further from the page's ground. */
export function inOrder(index: number, count: number): Colour {
  return `s${count < 2 ? 7 : Math.round((index * 7) / (count - 1))}` as Colour
}

export function rem(): number {
  return parseFloat(getComputedStyle(document.documentElement).fontSize) || 16
}

export function onTheme(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

function changed(): void {
  known.clear()
  for (const listener of [...listeners]) listener()
}

function set(theme: 'light' | 'dark' | null): void {
  if (theme) document.documentElement.dataset.theme = theme
  else delete document.documentElement.dataset.theme
  changed()
}

function stored(): 'light' | 'dark' | null {
  try {
    const theme = localStorage.getItem(KEY)
    return theme === 'light' || theme === 'dark' ? theme : null
  } catch {
    return null // a file:// page may have no storage
  }
}

export function isDark(): boolean {
  const theme = document.documentElement.dataset.theme
  return theme ? theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches
}

export function toggle(): void {
  const theme = isDark() ? 'light' : 'dark'
  try { localStorage.setItem(KEY, theme) } catch { /* kept for this page only */ }
  set(theme)
}

export function begin(): void {
  const theme = stored()
  if (theme) document.documentElement.dataset.theme = theme
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', changed)
  // Paper is white and opens nothing: charts are drawn light for printing, what is folded is opened, and both go back afterwards.
  let before: 'light' | 'dark' | null = null
  let folded: HTMLDetailsElement[] = []
  addEventListener('beforeprint', () => {
    before = (document.documentElement.dataset.theme as 'light' | 'dark' | undefined) ?? null
    set('light')
    folded = [...document.querySelectorAll<HTMLDetailsElement>('details:not([open], .menu)')]
    for (const details of folded) details.open = true
  })
  addEventListener('afterprint', () => {
    set(before)
    for (const details of folded) details.open = false
  })
}
