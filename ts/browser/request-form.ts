/** The request of the playground: one request with two views, a form and JSON. */
import { draftText, NO_CRITERIA, type QuestionDraft, type RequestDraft, readDraft } from '../src/dashboard/draft.ts';
import { draw, find, findAll } from './page.ts';
import { questionForms, readQuestions, withoutEmptyRows } from './question-form.ts';

type View = 'form' | 'json';

export class RequestForm {
  readonly #form: HTMLFormElement;
  readonly #state: HTMLTextAreaElement;
  readonly #json: HTMLTextAreaElement;
  readonly #questions: HTMLElement;
  readonly #onChange: () => void;
  #view: View = 'form';

  /** @param onChange - Called after every change of the request. */
  constructor(form: HTMLFormElement, onChange: () => void) {
    this.#form = form;
    this.#state = find(form, '#state');
    this.#json = find(form, '#request-json');
    this.#questions = find(form, '[data-questions]');
    this.#onChange = onChange;
    form.addEventListener('click', (event) => this.#click(event));
    form.addEventListener('change', (event) => this.#change(event));
    form.addEventListener('input', onChange);
  }

  /** The text of the request as it will be sent. */
  get text(): string {
    return this.#view === 'json' ? this.#json.value : draftText(this.#draft());
  }

  /** Shows a request in the open view, or as JSON if the form cannot show it. */
  set text(text: string) {
    this.#json.value = text;
    const draft = readDraft(text);
    if (typeof draft === 'string') this.#show('json');
    else this.#fill(draft);
    this.#onChange();
  }

  #draft(): RequestDraft {
    return {
      isJson: this.#checked('state-kind') === 'json',
      state: this.#state.value,
      questions: readQuestions(this.#questions).map(withoutEmptyRows),
    };
  }

  #fill({ isJson, state, questions }: RequestDraft): void {
    this.#check('state-kind', isJson ? 'json' : 'text');
    this.#state.value = state;
    this.#fillQuestions(questions);
  }

  #fillQuestions(questions: readonly QuestionDraft[]): void {
    draw(this.#questions, questionForms(questions));
  }

  #change({ target }: Event): void {
    if (!(target instanceof HTMLInputElement || target instanceof HTMLSelectElement)) return;
    if (target.name === 'view') this.#switchTo(target.value as View);
    if (target.name === 'type') showCriteria(target);
    this.#onChange();
  }

  #switchTo(view: View): void {
    if (view === 'json') {
      this.#json.value = this.text;
      this.#show('json');
      return;
    }
    const draft = readDraft(this.#json.value);
    if (typeof draft === 'string') {
      this.#show('json');
      this.#note(`The form cannot show this request: ${draft}.`);
      return;
    }
    this.#show('form');
    this.#fill(draft);
  }

  #show(view: View): void {
    this.#view = view;
    this.#check('view', view);
    for (const part of findAll(this.#form, 'div[data-view]')) part.hidden = part.dataset.view !== view;
    this.#note('');
  }

  #note(text: string): void {
    const note = find(this.#form, '[data-view-note]');
    note.textContent = text;
    note.hidden = text === '';
  }

  #click({ target }: Event): void {
    const button = target instanceof Element ? target.closest<HTMLElement>('[data-action]') : null;
    if (button === null) return;
    if (button.dataset.action === 'add-question') this.#addQuestion();
    if (button.dataset.action === 'remove-question') removeAndFocus(button.closest('[data-question]'), this.#form);
    if (button.dataset.action === 'remove-row') removeAndFocus(button.closest('[data-row]'), this.#form);
    if (button.dataset.action === 'add-row') this.#addRow(button);
    this.#onChange();
  }

  #addQuestion(): void {
    const questions = readQuestions(this.#questions);
    const question = { id: freeName(questions), type: 'noul', instructions: '', ...NO_CRITERIA } as const;
    this.#fillQuestions([...questions, question]);
    findAll<HTMLTextAreaElement>(this.#questions, '[name=instructions]').at(-1)?.focus();
  }

  #addRow(button: HTMLElement): void {
    const rows = findAll(button.parentElement ?? this.#form, '[data-row]');
    const row = rows.at(-1)?.cloneNode(true);
    if (!(row instanceof HTMLElement)) {
      // All rows were removed; redrawing the questions brings the first rows back.
      this.#fillQuestions(readQuestions(this.#questions));
      return;
    }
    for (const input of findAll<HTMLInputElement>(row, 'input')) input.value = '';
    button.before(row);
    numberRows(button.parentElement);
    find<HTMLInputElement>(row, 'input').focus();
  }

  #checked(name: string): string {
    return find<HTMLInputElement>(this.#form, `[name="${name}"]:checked`).value;
  }

  #check(name: string, value: string): void {
    find<HTMLInputElement>(this.#form, `[name="${name}"][value="${value}"]`).checked = true;
  }
}

function showCriteria(select: HTMLInputElement | HTMLSelectElement): void {
  const question = select.closest<HTMLElement>('[data-question]');
  if (question === null) return;
  for (const part of findAll(question, '[data-criteria]')) part.hidden = part.dataset.criteria !== select.value;
}

/**
 * Removes an element. The focus, which would be lost with it, moves to the first field of the element before it, or to
 * the button that adds a question.
 */
function removeAndFocus(element: HTMLElement | null, form: HTMLFormElement): void {
  const [before, parent] = [element?.previousElementSibling, element?.parentElement];
  element?.remove();
  numberRows(parent ?? null);
  const next = before?.querySelector<HTMLElement>('input, textarea') ?? find(form, '[data-action=add-question]');
  next.focus();
}

/** Numbers the remaining rows, because a level's position is its meaning. */
function numberRows(parent: HTMLElement | null): void {
  if (parent === null) return;
  for (const [index, row] of findAll(parent, ':scope > [data-row]').entries()) {
    const isLevel = row.querySelector('[name=level]') !== null;
    const [name, title] = isLevel
      ? [`level ${index}`, `Level ${index}`]
      : [`option ${index + 1}`, `Option ${index + 1}`];
    const label = row.querySelector('.row-name');
    if (label) label.textContent = String(index);
    for (const input of findAll(row, 'input')) {
      const isDescription = input.getAttribute('name') === 'description';
      input.setAttribute('aria-label', isDescription ? `What ${name} means` : title);
    }
    const button = row.querySelector('button');
    button?.setAttribute('aria-label', `Remove ${name}`);
    button?.setAttribute('title', `Remove ${name}`);
  }
}

function freeName(questions: readonly QuestionDraft[]): string {
  const taken = new Set(questions.map(({ id }) => id));
  for (let count = questions.length + 1; ; count += 1) {
    if (!taken.has(`question_${count}`)) return `question_${count}`;
  }
}
