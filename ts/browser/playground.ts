/** The playground: it sends the request in its form, and shows the answer next to it. */
import { readDecision } from '../src/dashboard/answer.ts';
import { decisionView, type TimingSplit } from '../src/dashboard/answer-view.ts';
import { formatMs } from '../src/dashboard/format.ts';
import { html } from '../src/dashboard/html.ts';
import { RECIPES } from '../src/dashboard/recipes/index.ts';
import { recipeText } from '../src/dashboard/recipes/recipe.ts';
import { MAX_SHARED_CHARACTERS, requestFragment, requestInFragment } from '../src/dashboard/shared-request.ts';
import { snippets } from '../src/dashboard/snippets.ts';
import { snippetTabs } from '../src/dashboard/tabs.ts';
import { askServer } from './access.ts';
import { copyField } from './copy.ts';
import { fill, find, findAll, write } from './page.ts';
import { RequestForm } from './request-form.ts';
import { makeTabs } from './tabs.ts';

/** Fills the playground and makes it ready for use. */
export function startPlayground(root: HTMLElement): void {
  new Playground(root);
}

class Playground {
  readonly #root: HTMLElement;
  readonly #request: RequestForm;
  readonly #recipe: HTMLSelectElement;
  readonly #decide: HTMLButtonElement;

  constructor(root: HTMLElement) {
    this.#root = root;
    const form = find<HTMLFormElement>(root, '[data-form]');
    this.#recipe = find(root, '[data-recipe]');
    this.#decide = find(root, '[data-decide]');
    fill(find(root, '[data-code]'), snippetTabs(this.#snippets('')));
    makeTabs(root);
    this.#request = new RequestForm(form, () => this.#showCode());
    this.#load(this.#recipe.value);
    this.#takeAddress();
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      void this.#send();
    });
    form.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.requestSubmit();
    });
    this.#recipe.addEventListener('change', () => this.#load(this.#recipe.value));
    addEventListener('hashchange', () => this.#takeAddress());
    find(root, '[data-share]').addEventListener('click', () => void this.#share());
  }

  /** Loads the recipe that the address names, or the request that it holds. Nothing is sent before somebody decides. */
  #takeAddress(): void {
    const recipe = /^#recipe=([\w-]+)$/.exec(location.hash)?.[1];
    const request = requestInFragment(location.hash);
    if (recipe === undefined && request === undefined) return;
    if (recipe !== undefined) this.#load(recipe);
    if (typeof request === 'string') this.#request.text = request;
    if (request === null) this.#showError('The link is damaged: it holds no request.');
    this.#root.scrollIntoView();
  }

  /** Copies a link that holds the request alone: neither a key nor a password is in it. */
  async #share(): Promise<void> {
    const said = find(this.#root, '[data-shared]');
    const link = find<HTMLInputElement>(this.#root, '#share-link');
    const { text } = this.#request;
    link.hidden = text.length > MAX_SHARED_CHARACTERS;
    if (link.hidden) {
      write(said, 'The request is too long for a link.');
      return;
    }
    link.value = `${location.origin}${location.pathname}${requestFragment(text)}`;
    write(said, (await copyField(link)) ? 'Copied. It holds the request, no key and no password.' : 'Press Ctrl+C.');
  }

  #load(name: string): void {
    const recipe = RECIPES.find((known) => known.name === name);
    if (!recipe) return;
    this.#recipe.value = name;
    this.#request.text = recipeText(recipe);
  }

  #snippets(body: string) {
    return snippets({ origin: location.origin, body, needsKey: 'needsKey' in this.#root.dataset });
  }

  #showCode(): void {
    for (const { name, text } of this.#snippets(this.#request.text)) {
      write(find(this.#root, `[data-tab="${name}"] pre`), text);
    }
  }

  async #send(): Promise<void> {
    // The keyboard shortcut could send a second request meanwhile; a disabled button would lose the focus.
    if (this.#decide.ariaDisabled === 'true') return;
    this.#decide.ariaDisabled = 'true';
    try {
      const key = find<HTMLInputElement>(this.#root, '#api-key').value;
      const response = await askServer('/playground', { method: 'POST', body: this.#request.text }, key);
      const text = await response.text();
      if (response.ok) this.#showAnswer(text, readTiming(response.headers.get('Server-Timing')));
      else this.#showRefusal(response, text);
    } catch {
      this.#showError('The server cannot be reached.');
    }
    this.#decide.ariaDisabled = 'false';
  }

  #showAnswer(text: string, timing: TimingSplit): void {
    const decision = readDecision(text);
    this.#showError('');
    fill(find(this.#root, '[data-answer]'), decisionView(decision, timing));
    const raw = find(this.#root, '[data-raw]');
    raw.hidden = false;
    write(find(raw, 'pre'), text);
    this.#say(`Answered in ${formatMs(timing.total)} ms`);
  }

  /** Shows the server's own message, or, if the API key is missing or wrong, asks for the key. */
  #showRefusal(response: Response, text: string): void {
    const wantsKey = response.headers.get('WWW-Authenticate')?.startsWith('Bearer') === true;
    if (wantsKey) {
      find(this.#root, '[data-key]').hidden = false;
      find(this.#root, '#api-key').focus();
      this.#showError('The API key is missing or wrong. It is not kept.');
      return;
    }
    this.#showError(`${response.status}: ${text}`);
  }

  #showError(text: string): void {
    const place = find(this.#root, '[data-error]');
    place.hidden = text === '';
    write(place, text);
    if (text === '') return;
    find(this.#root, '[data-raw]').hidden = true;
    fill(find(this.#root, '[data-answer]'), html`<p class="empty">No answer.</p>`);
  }

  #say(text: string): void {
    write(find(this.#root, '[data-said]'), text);
  }
}

/** Returns the durations in a `Server-Timing` header, in milliseconds; a missing one is 0. */
function readTiming(header: string | null): TimingSplit {
  const duration = (name: string) => Number(new RegExp(`\\b${name};dur=([\\d.]+)`).exec(header ?? '')?.[1] ?? 0);
  return { encode: duration('encode'), wait: duration('wait'), run: duration('run'), total: duration('total') };
}

/**
 * Replaces the server's address in the code with the one that this browser used: the server does not know of a proxy in
 * front of it.
 */
export function writeOrigin(): void {
  for (const place of findAll(document, '[data-origin]')) {
    const { origin = '' } = place.dataset;
    const texts = place.matches('pre') ? [place] : findAll(place, 'pre');
    for (const text of texts) write(text, (text.textContent ?? '').replaceAll(`${origin}/`, `${location.origin}/`));
  }
}
