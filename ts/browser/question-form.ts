/** The form of a request's questions: it is drawn from a draft and read back as one. */
import type { OptionDraft, QuestionDraft } from '../src/dashboard/draft.ts';
import { type Html, html } from '../src/dashboard/html.ts';
import { QUESTION_TYPES, type QuestionType } from '../src/schemas/names.ts';
import { find, findAll } from './page.ts';

const TYPE_WORDS: Readonly<Record<QuestionType, string>> = {
  choice: 'choice: one of several',
  score: 'score: a place on a scale',
  noul: 'noul: yes or no',
};

/** The least number of rows for options or levels, since the server refuses fewer than two. */
const MIN_ROWS = 2;

/** Returns the forms of all questions. */
export function questionForms(questions: readonly QuestionDraft[]): Html {
  return html`${questions.map((question, index) => questionForm(question, index))}`;
}

function questionForm(question: QuestionDraft, index: number): Html {
  const { id, type, instructions } = question;
  return html`<fieldset class="question" data-question>
  <legend class="unseen">Question ${index + 1}</legend>
  <div class="question-head">
    <label class="field"><span>Name</span><input name="id" value="${id}" spellcheck="false" autocomplete="off"></label>
    <label class="field"><span>Type</span><select name="type">${QUESTION_TYPES.map(
      (known) => html`<option value="${known}"${known === type && html` selected`}>${TYPE_WORDS[known]}</option>`,
    )}</select></label>
    ${removeButton('remove-question', `question ${id}`)}
  </div>
  <label class="field"><span>Question</span><textarea name="instructions" rows="2">${instructions}</textarea></label>
  <div data-criteria="choice"${type !== 'choice' && html` hidden`}>${optionRows(question.options)}</div>
  <div data-criteria="score"${type !== 'score' && html` hidden`}>${levelRows(question.levels)}</div>
  <div data-criteria="noul"${type !== 'noul' && html` hidden`}>
    <div class="row"><span class="row-name">yes</span><input name="yes" value="${question.yes}" aria-label="What yes means" placeholder="what yes means (optional)"></div>
    <div class="row"><span class="row-name">no</span><input name="no" value="${question.no}" aria-label="What no means" placeholder="what no means (optional)"></div>
  </div>
</fieldset>`;
}

function optionRows(options: readonly OptionDraft[]): Html {
  return html`<div class="rows-title">Options</div>${padded(options, { name: '', description: '' }).map(
    ({ name, description }, index) => html`<div class="row" data-row>
    <input name="option" class="name" value="${name}" aria-label="Option ${index + 1}" placeholder="option" spellcheck="false">
    <input name="description" value="${description}" aria-label="What option ${index + 1} means" placeholder="what it means (optional)">
    ${removeButton('remove-row', `option ${index + 1}`)}</div>`,
  )}<button type="button" class="quiet small" data-action="add-row">Add an option</button>`;
}

function levelRows(levels: readonly string[]): Html {
  return html`<div class="rows-title">Levels, lowest first</div>${padded(levels, '').map(
    (level, index) => html`<div class="row" data-row><span class="row-name">${index}</span>
    <input name="level" value="${level}" aria-label="Level ${index}" placeholder="what this level means">
    ${removeButton('remove-row', `level ${index}`)}</div>`,
  )}<button type="button" class="quiet small" data-action="add-row">Add a level</button>`;
}

function padded<Item>(items: readonly Item[], empty: Item): readonly Item[] {
  return [...items, ...Array.from({ length: Math.max(0, MIN_ROWS - items.length) }, () => empty)];
}

function removeButton(action: string, what: string): Html {
  return html`<button type="button" class="remove" data-action="${action}" aria-label="Remove ${what}" title="Remove ${what}">×</button>`;
}

/** Returns the questions as they stand in the form, including empty rows. */
export function readQuestions(root: HTMLElement): QuestionDraft[] {
  return findAll(root, '[data-question]').map((form) => ({
    id: value(form, 'id'),
    type: value(form, 'type') as QuestionType,
    instructions: value(form, 'instructions'),
    options: findAll(form, '[data-criteria=choice] [data-row]').map((row) => ({
      name: value(row, 'option'),
      description: value(row, 'description'),
    })),
    levels: findAll(form, '[data-criteria=score] [data-row]').map((row) => value(row, 'level')),
    yes: value(form, 'yes'),
    no: value(form, 'no'),
  }));
}

function value(root: HTMLElement, name: string): string {
  return find<HTMLInputElement>(root, `[name="${name}"]`).value;
}

/** Returns the question without the rows that are empty. */
export function withoutEmptyRows(question: QuestionDraft): QuestionDraft {
  return {
    ...question,
    options: question.options.filter(({ name, description }) => name !== '' || description !== ''),
    levels: question.levels.filter((level) => level !== ''),
  };
}
