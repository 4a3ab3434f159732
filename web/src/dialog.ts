// Questions that stand in the way until they are answered; Escape means no.

import { h } from './dom'

function show(...content: (Node | string)[]): { dialog: HTMLDialogElement; closed: Promise<string> } {
  const dialog = h('dialog', null, h('form', { method: 'dialog' }, ...content))
  document.body.append(dialog)
  const closed = new Promise<string>(resolve => dialog.addEventListener('close', () => {
    dialog.remove()
    resolve(dialog.returnValue)
  }))
  dialog.showModal()
  return { dialog, closed }
}

/** A line or some lines of text; null when it was left. */
export async function askText(question: string, value: string, lines = 1): Promise<string | null> {
  const field = lines > 1 ? h('textarea', { rows: lines, maxlength: 4000, 'aria-label': question }) : h('input', { type: 'text', maxlength: 200, 'aria-label': question })
  field.value = value
  const { closed } = show(h('h2', null, question), field, h('div', { class: 'row' },
    h('button', { value: 'no', class: 'quiet', formnovalidate: true }, 'Cancel'), h('button', { value: 'yes', class: 'strong' }, 'Save')))
  // Return in a line of text is Save, though Cancel stands first.
  if (lines === 1) field.addEventListener('keydown', (event: Event) => {
    if ((event as KeyboardEvent).key !== 'Enter') return
    event.preventDefault()
    ;(field.closest('dialog') as HTMLDialogElement).close('yes')
  })
  field.focus()
  return (await closed) === 'yes' ? field.value.trim() : null
}

/** Asks twice: the second time the name must be written. */
export async function askTwice(question: string, warning: string, name: string): Promise<boolean> {
  const first = show(h('h2', null, question), h('p', null, warning), h('div', { class: 'row' },
    h('button', { value: 'no', class: 'quiet', autofocus: true }, 'Keep it'), h('button', { value: 'yes', class: 'danger' }, 'Delete…')))
  if ((await first.closed) !== 'yes') return false
  const field = h('input', { type: 'text', 'aria-label': 'the run’s id', autocomplete: 'off' })
  const really = h('button', { value: 'yes', class: 'danger', disabled: true }, 'Delete for good')
  field.addEventListener('input', () => { really.disabled = field.value.trim() !== name })
  const second = show(h('h2', null, 'Confirm'), h('p', null, 'To delete the run, type its id: ', h('code', null, name)), field,
    h('div', { class: 'row' }, h('button', { value: 'no', class: 'quiet' }, 'Keep it'), really))
  field.focus()
  field.addEventListener('keydown', (event: KeyboardEvent) => {
    if (event.key !== 'Enter') return
    event.preventDefault()
    if (!really.disabled) second.dialog.close('yes')
  })
  return (await second.closed) === 'yes' && field.value.trim() === name
}

export async function tell(title: string, ...words: (Node | string)[]): Promise<void> {
  await show(h('h2', null, title), ...words.map(word => typeof word === 'string' ? h('p', null, word) : word),
    h('div', { class: 'row' }, h('button', { value: 'ok', class: 'strong', autofocus: true }, 'Close'))).closed
}

export const KEYS: [string, string][] = [
  ['j  k', 'next and previous rung'], ['t', 'show the data of all charts'], ['d', 'light or dark'],
  ['/', 'search the runs'], ['drag', 'zoom all charts of a rung; double click to undo'], ['Esc', 'back, or close'], ['?', 'this help'],
]

export function help(): Promise<void> {
  return tell('Keyboard shortcuts', h('table', { class: 'keys' }, h('tbody', null, ...KEYS.map(([key, does]) =>
    h('tr', null, h('th', null, ...key.split('  ').flatMap(one => [h('kbd', null, one), ' '])), h('td', null, does))))))
}
