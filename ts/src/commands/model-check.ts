/** `svc model check`: says what a model folder is, what is wrong with it, and makes one decision with it. */

import { formatBytes } from '../dashboard/format.ts';
import type { GraphTensor, ModelInfo, ModelInspection } from '../engine/contract.ts';
import { printable } from '../log/printable.ts';
import { type Family, familyOf } from '../model/family.ts';
import { inspectConfiguredModel, loadConfiguredEngine } from '../model/load.ts';
import { tryReferences } from '../model/references.ts';
import { Refusal } from '../refusal.ts';
import type { Config, Flags } from '../settings/config.ts';
import { answerTable } from './answer-table.ts';
import { commandSettings } from './command-settings.ts';

export interface ModelCheckFlags extends Flags {
  readonly json?: boolean;
}

/** A question of each type, as the README asks them. */
const REQUEST = Buffer.from(
  JSON.stringify({
    state: 'I was charged twice and nobody answers',
    questions: {
      refund: { type: 'noul', instructions: 'Does the customer want money back?' },
      team: {
        type: 'choice',
        instructions: 'Which team should handle this?',
        criteria: { billing: 'payments, invoices', tech: 'bugs, outages', sales: 'pricing' },
      },
      anger: { type: 'score', instructions: 'How angry is the customer?', criteria: ['calm', 'annoyed', 'furious'] },
    },
  }),
);

/** The findings: either problems, or an answer. */
interface Checked extends ModelInspection {
  /** The family of the model, and the file by which it was known. */
  readonly family?: Family;
  readonly answer?: Buffer;
  /** The number of reference answers that the folder has, all of which the model gave. */
  readonly references?: number;
  /** Whether the model's 8-bit products are exact on this processor. */
  readonly exactness?: ModelInfo['exactness'];
  readonly exactnessNote?: string | undefined;
}

/**
 * Resolves once the folder is checked and the report is on stdout; the exit code is 1 unless the model can be served.
 * Without `dir` the model of the settings is checked.
 *
 * @throws Refusal when the settings are wrong, or the engine cannot be loaded.
 */
export async function modelCheck(dir: string | undefined, { json = false, ...flags }: ModelCheckFlags): Promise<void> {
  const config = commandSettings(dir === undefined ? flags : { ...flags, model: dir });
  const checked = await check(config);
  process.stdout.write(json ? `${JSON.stringify(asJson(checked), null, 2)}\n` : report(checked));
  if (checked.answer === undefined) process.exitCode = 1;
}

/** Returns the findings. The decision comes last: it stops at the first problem, while the inspection finds all. */
async function check(config: Config): Promise<Checked> {
  const found = await inspectConfiguredModel(config);
  const family = await familyOf(found.dir);
  const inspection = { ...found, ...(family !== undefined && { family }) };
  if (inspection.problems.length > 0) return inspection;
  try {
    return { ...inspection, ...(await decideAndTry(config)) };
  } catch (error) {
    if (error instanceof Refusal) return { ...inspection, problems: [error.message] };
    throw error;
  }
}

async function decideAndTry(config: Config): Promise<Partial<Checked>> {
  const { engine, model } = await loadConfiguredEngine(config);
  try {
    const reply = await engine.decide(REQUEST);
    if (reply.failure === undefined) {
      const { exactness, exactnessNote } = engine.info();
      const told = { exactness, exactnessNote };
      try {
        const references = await tryReferences(engine, model.folder, new AbortController().signal);
        return { answer: reply.body, ...told, references };
      } catch (error) {
        // Inexact products can be the reason why an answer differs.
        if (error instanceof Refusal) return { ...told, problems: [error.message] };
        throw error;
      }
    }
    const { message, cause } = reply.failure;
    throw new Refusal(cause === undefined ? message : `${message}: ${cause}`);
  } finally {
    await engine.close();
  }
}

function asJson({ answer, ...inspection }: Checked): object {
  const response = answer === undefined ? {} : { answer: JSON.parse(answer.toString('utf8')) };
  return { servable: answer !== undefined, ...inspection, ...response };
}

function report(checked: Checked): string {
  const { dir, layout, name, version, labels, problems, answer, references = 0, exactness, exactnessNote } = checked;
  const { family } = checked;
  const blocks = [
    block('folder', [dir]),
    block('model', [[name, version].filter(Boolean).join(' ')]),
    block('family', family === undefined ? [] : [`${family.name}, by ${family.file}`]),
    block('layout', [layout ?? '']),
    block('files', fileLines(checked)),
    block('inputs', tensorLines(checked.inputs)),
    block('outputs', tensorLines(checked.outputs)),
    block(
      'labels',
      labels.map(({ name, role }, index) => `${index} ${name}${role ? ` (taken for ${role})` : ''}`),
    ),
    block('tokens', [tokenLine(checked)]),
    block('products', [[exactness, exactnessNote].filter(Boolean).join(': ')]),
    block('checked', references > 0 ? [`${references} reference answers`] : []),
    block('problem', problems),
  ];
  const decision = answer === undefined ? '' : `\n${answerTable(answer, { colors: false })}\n`;
  const verdict =
    answer === undefined ? `it cannot be served\n` : `it can be served: svc serve --model ${printable(dir)}\n`;
  return `${blocks.join('')}${decision}${verdict}`;
}

/** Returns the lines with the title in front of each; an empty text when all lines are empty. */
function block(title: string, lines: readonly string[]): string {
  return lines
    .filter((line) => line !== '')
    .map((line) => `${title.padEnd(8)} ${printable(line)}\n`)
    .join('');
}

function fileLines({ files }: Checked): string[] {
  const width = Math.max(...files.map(({ name }) => name.length));
  return files.map(
    ({ name, bytes, sha256 }) => `${name.padEnd(width)}  ${formatBytes(bytes).padStart(8)}  sha256 ${sha256}`,
  );
}

function tensorLines(tensors: readonly GraphTensor[]): string[] {
  return tensors.map(({ name, kind, shape }) => `${name} ${kind} [${shape.join(', ')}]`);
}

function tokenLine({ vocabulary, maxLen }: Checked): string {
  if (vocabulary === undefined) return '';
  const rows = maxLen === undefined ? '' : `, at most ${maxLen} in a row`;
  return `${vocabulary} in the vocabulary${rows}`;
}
