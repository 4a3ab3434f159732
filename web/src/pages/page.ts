// What every page is: an element, what the keys do on it, and how it is left.

export interface Page {
  element: HTMLElement
  title: string
  /** j and k */
  step?(by: 1 | -1): void
  destroy(): void
}
