/** A button that copies the text beside it. */
import { findAll } from './page.ts';

const SAID_MS = 1500;

/** Gives every snippet in `root` its button. */
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

/** The clipboard is for pages from this machine or over TLS; the others select the text and use the old way. */
async function copy(element: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(element.textContent ?? '');
    return true;
  } catch {
    getSelection()?.selectAllChildren(element);
    return document.execCommand('copy');
  }
}
