/**
 * Makes docs/settings.md from the schema of the settings: `node scripts/settings-page.mjs` writes it, and with `--check`
 * the script fails if the page is not what it would write. It needs `npm run build`.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';

const PAGE = new URL('../docs/settings.md', import.meta.url);

const { ConfigSchema, settingSchema, wantedValue } = await import('../dist/src/schemas/config.js');
const { variableOf } = await import('../dist/src/settings/variables.js');

/** The flags of `svc serve` that set a key. */
const FLAGS = {
  listen: '`--listen`, or `--host` and `--port`',
  ...Object.fromEntries(
    ['device', 'model', 'model_file', 'runtime', 'threads', 'parallel', 'log_level', 'log_format'].map((key) => [
      key,
      `\`--${key.replaceAll('_', '-')}\``,
    ]),
  ),
};

/** The parts of the page, each with the keys that belong to it. */
const PARTS = {
  'Address and device': /^(generated|listen|listen_mode|device|runtime|threads|parallel)$/,
  'The model': /^(model|s3|hf|hub|refresh)/,
  'Who may call': /^(api_key|password|allow|cors)/,
  'The log': /^log/,
  'Limits and times': /./,
};

const HEAD = `# Settings

This page lists every setting. It is made from the schema that the server checks its settings with.

A setting comes from \`svc.json\` in the working folder, or in the file of \`--config\` or \`SVC_CONFIG\`, then from its
variable, then from its flag; the later wins. An unknown key or variable is a warning, and a wrong value stops the start
with one line. \`npx @svc/server config\` prints the settings in force, and where each came from.

\`SVC_DATA\` is a folder for [fetched models](model-sources.md#the-cache), and for generated keys where they cannot be
written beside \`svc.json\`. It is no setting of the file. [OpenTelemetry](stacks/opentelemetry.md) has its own
variables, \`OTEL_*\`.
`;

/** Returns a value as it is written in `svc.json`; sizes also in a unit. */
function shownDefault(value) {
  if (value === '' || (Array.isArray(value) && value.length === 0)) return 'none';
  if (typeof value !== 'number') return `\`${value}\``;
  const [unit, bytes] = value >= 2 ** 30 ? ['GiB', 2 ** 30] : ['MiB', 2 ** 20];
  const isSize = value >= bytes && Number.isInteger(value / bytes);
  return `${value.toLocaleString('en')}${isSize ? ` (${value / bytes} ${unit})` : ''}`;
}

/** Returns the condition that a value must meet, with its numbers grouped. */
function shownRange(key) {
  const { type } = settingSchema(key);
  if (type !== 'integer') return wantedValue(key);
  const range = wantedValue(key).replace('a whole number from ', '');
  return range.replace(/\d{4,}/g, (digits) => Number(digits).toLocaleString('en'));
}

function row(key) {
  const { default: value, description } = settingSchema(key);
  const variable = variableOf(key);
  const set = [variable === undefined ? undefined : `\`${variable}\``, FLAGS[key]].filter(Boolean).join(', ');
  const cells = [`\`${key}\``, set, shownRange(key), shownDefault(value), description];
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}

function page() {
  let left = Object.keys(ConfigSchema.properties);
  const parts = Object.entries(PARTS).map(([title, pattern]) => {
    const keys = left.filter((key) => pattern.test(key));
    left = left.filter((key) => !pattern.test(key));
    const table = ['| key | variable, flag | value | default | |', '|---|---|---|---|---|', ...keys.map(row)];
    return `\n## ${title}\n\n${table.join('\n')}\n`;
  });
  return `${HEAD}${parts.join('')}`;
}

if (process.argv[2] === '--check') {
  const isSame = readFileSync(PAGE, 'utf8').replaceAll('\r\n', '\n') === page();
  if (!isSame) process.stderr.write('docs/settings.md is not up to date: run node scripts/settings-page.mjs\n');
  process.exitCode = isSame ? 0 : 1;
} else writeFileSync(PAGE, page());
