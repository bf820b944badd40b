import assert from 'node:assert/strict';
import { test } from 'node:test';
import { snippets } from '../../src/dashboard/snippets.ts';
import { runCommand } from '../addon/program.ts';
import { runPython } from './python.ts';

const BODIES = [
  '{"state": "plain", "questions": {}}',
  `{"state": "it's $HOME \`id\` $(id) \\${'{x}'} \\\\ \\" !! %s\\n"}`,
  `{\n  "state": "",\n  "q": "\\u00e9 é 💡 \${x} \\\\"\n}`,
  '@/etc/hostname',
  'ends with a backslash\\',
  'ends with a quote"',
  '"""',
  "'''",
  '\r\n\t`',
  '',
];

const options = (body: string, needsKey: boolean) => ({ origin: 'http://127.0.0.1:1', body, needsKey });

test('curl sends every body as it is', async () => {
  for (const body of BODIES) {
    for (const needsKey of [false, true]) {
      const [curl] = snippets(options(body, needsKey));
      const script = `curl() { for last; do :; done; printf '%s|%s' "$last" "$*"; }\n${curl.text}`;
      const { stdout, stderr } = await runCommand('bash', { args: ['-c', script], env: { SVC_API_KEY: 'secret' } });
      const [sent, ...all] = stdout.split('|');
      assert.deepEqual([sent, stderr], [body, '']);
      assert.equal(all.join('|').includes('Authorization: Bearer secret'), needsKey);
    }
  }
});

test('TypeScript sends every body as it is', async () => {
  for (const body of BODIES) {
    const [, typescript] = snippets(options(body, true));
    const stub =
      'globalThis.fetch = async (url, { method, headers, body }) =>' +
      ' ({ ok: true, json: async () => ({ answers: JSON.stringify([url, method, headers, body]) }) });\n';
    const args = ['--input-type=module', '-e', stub + typescript.text];
    const { stdout, stderr } = await runCommand(process.execPath, { args, env: { SVC_API_KEY: 'secret' } });
    assert.deepEqual(
      JSON.parse(stdout || stderr),
      ['http://127.0.0.1:1/v1/systemone', 'POST', { authorization: 'Bearer secret' }, body],
      typescript.text,
    );
  }
});

test('Python sends every body as it is', async () => {
  const stub = `
import json, os, sys, types
os.environ["SVC_API_KEY"] = "secret"
class Response:
    def __init__(self, said): self.said = said
    def raise_for_status(self): pass
    def json(self): return {"answers": json.dumps(self.said)}
def post(url, data, timeout, headers): return Response([url, data.decode(), headers])
sys.modules["requests"] = types.SimpleNamespace(post=post)
exec(sys.stdin.read())
`;
  for (const body of BODIES) {
    const [, , python] = snippets(options(body, true));
    const { stdout, stderr } = await runPython(['-X', 'utf8', '-c', stub], { input: python.text });
    assert.deepEqual(
      JSON.parse(stdout || stderr),
      ['http://127.0.0.1:1/v1/systemone', body, { Authorization: 'Bearer secret' }],
      python.text,
    );
  }
});
