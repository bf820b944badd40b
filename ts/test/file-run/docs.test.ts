import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { docBlocks } from '../doc-blocks.ts';
import { LiveServer } from '../real/live-server.ts';
import { runSvc } from '../svc-process.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const BLOCKS = docBlocks('batch.md');
const blocksOf = (language: string) => BLOCKS.filter((block) => block.language === language).map(({ text }) => text);

/** Returns the arguments of the command line in a block, and the variables that it sets. */
function commandOf(block: string) {
  const env = Object.fromEntries([...block.matchAll(/^export (\w+)=(\S+)$/gm)].map(([, name, value]) => [name, value]));
  const [, line = ''] = /^npx @svc\/server (.*)$/m.exec(block) ?? [];
  return { args: line.split(' '), env };
}

suite('docs/batch.md', () => {
  test('has commands that do what it says, and outputs as it shows them', async (t) => {
    const cwd = temporaryFolder(t);
    const [input = '', header = ''] = blocksOf('csv');
    const [questions = '', error = ''] = blocksOf('json');
    const [first = '', , resumed = '', atServers = ''] = blocksOf('sh');
    assert.equal(BLOCKS.length, 8);
    writeFileSync(join(cwd, 'tickets.csv'), input);
    writeFileSync(join(cwd, 'questions.json'), questions);

    const { stderr, code } = await runSvc(t, commandOf(first).args, { cwd });
    assert.match(
      stderr,
      /^tickets\.answers\.csv: 2 rows answered, 1 bad, see .*tickets\.answers\.csv\.errors\.jsonl, in \d+ s\n$/,
    );
    assert.equal(code, 0);
    const output = readFileSync(join(cwd, 'tickets.answers.csv'), 'utf8');
    assert.ok(output.startsWith(header.trimEnd()), output);
    assert.equal(readFileSync(join(cwd, 'tickets.answers.csv.errors.jsonl'), 'utf8'), error);

    const again = await runSvc(t, commandOf(resumed).args, { cwd });
    assert.match(again.stderr, /^tickets\.answers\.csv: complete already, /);

    const { args, env } = commandOf(atServers);
    const ports = args.flatMap((arg) => /:(\d{5})$/.exec(arg)?.[1] ?? []);
    const servers = await Promise.all(ports.map(() => LiveServer.start(t, { env: env as Record<string, string> })));
    const there = args.map((arg) =>
      arg.replace(/127\.0\.0\.1:(\d+)$/, (_, port) => servers[ports.indexOf(port)]?.url.host ?? ''),
    );
    const served = await runSvc(t, there, { cwd, env: env as Record<string, string> });
    assert.match(served.stderr, /^tickets\.answers\.csv: 2 rows answered, 1 bad, /);
  });
});
