/** A button that copies the text next to it. */
import { findAll } from './page.ts';

const SAID_MS = 1500;

/** Adds the button to every snippet in `root`. */
export function addCopyButtons(root: ParentNode): void {
  for (const snippet of findAll(root, '.snippet')) {
    const text = snippet.querySelector('pre');
    if (text === null || snippet.querySelector('button') !== null) continue;
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'copy';
    button.textContent = 'Copy';
    button.setAttribute('aria-label', `Copy ${text.getAttribute('aria-label') ?? 'the text'}`);
    button.addEventListener('click', () => void copyFrom(text, button));
    snippet.append(button);
  }
}

async function copyFrom(element: HTMLElement, button: HTMLButtonElement): Promise<void> {
  const isCopied = await copy(element);
  button.textContent = isCopied ? 'Copied' : 'Press Ctrl+C';
  setTimeout(() => {
    button.textContent = 'Copy';
  }, SAID_MS);
}

/** Copies the value of a field and returns whether that worked; the value stays selected, to be copied by hand. */
export async function copyField(field: HTMLInputElement): Promise<boolean> {
  field.select();
  try {
    await navigator.clipboard.writeText(field.value);
    return true;
  } catch {
    return document.execCommand('copy');
  }
}

/**
 * Copies the text of an element and returns whether that worked. Only pages from this machine or over TLS may use the
 * clipboard; on other pages the text is selected and copied in the old way.
 */
async function copy(element: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(element.textContent ?? '');
    return true;
  } catch {
    getSelection()?.selectAllChildren(element);
    return document.execCommand('copy');
  }
}
