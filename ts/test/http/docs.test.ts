import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { suite, test } from 'node:test';
import { DIST } from '../../src/dist.ts';
import { startServer } from './server-under-test.ts';

const APP = new URL('app/', DIST);

suite("the API's page", () => {
  test('is open, and made of our own files alone', async (t) => {
    const { get } = await startServer(t, { apiKeys: ['k'.repeat(16)], password: 'p'.repeat(12) });
    const { status, text, headers } = await get('/docs');
    assert.equal(status, 200);
    const policy = String(headers['content-security-policy']);
    assert.match(policy, /default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'/);
    const links = [...text.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, link]) => link ?? '');
    assert.deepEqual(
      links.map((link) => link.replace(/\.[\da-f]{12}\./, '.')),
      ['data:,', '/docs/style.css', '/docs/main.js'],
    );
    for (const path of links.slice(1)) {
      const file = await get(path);
      assert.equal(file.status, 200);
      assert.match(String(file.headers['cache-control']), /immutable/);
    }
  });

  test('has no other file', async (t) => {
    const { get } = await startServer(t);
    for (const path of ['/docs/', '/docs/main.js', '/docs/third-party-notices.txt', '/docs/..%2fassets']) {
      assert.equal((await get(path)).status, 404, path);
    }
  });

  test('and the document are loaded by nothing that starts the server', () => {
    const files = readdirSync(APP).filter((file) => file.endsWith('.js'));
    const lazy = files.filter((file) => /^(?:document|docs)-/.test(file));
    assert.deepEqual(lazy.map((file) => file.replace(/-.*/, '')).toSorted(), ['docs', 'document']);
    const imports = files.flatMap((file) => {
      // The bundler writes the names that a file imports on lines of their own: the last line has the other file.
      const found = readFileSync(new URL(file, APP), 'utf8').matchAll(/^(?:import|export|\}) .*"\.\/(.+)";$/gm);
      return [...found].map(([, imported = '']) => ({ file, imported }));
    });
    assert.ok(imports.length > files.length, `${imports.length} imports in ${files.length} files`);
    assert.deepEqual(
      imports.filter(({ imported }) => lazy.includes(imported)),
      [],
    );
  });
});
