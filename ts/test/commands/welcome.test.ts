import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { resumeCommand } from '../../src/commands/batch.ts';
import { programName, welcome } from '../../src/commands/welcome.ts';

suite('the words to a newcomer', () => {
  const serving = { url: 'http://0.0.0.0:8080', needsKey: false, needsPassword: true };

  test('name an address that a browser can open, and a command that works where it was started', () => {
    const [ask, browser] = welcome(serving, { npm_command: 'exec' });
    assert.match(ask ?? '', /^try in another terminal: npx @svc\/server ask --url http:\/\/127\.0\.0\.1:8080 --state /);
    assert.match(
      browser ?? '',
      / http:\/\/127\.0\.0\.1:8080\/docs .* http:\/\/127\.0\.0\.1:8080\/ for the dashboard and its password$/,
    );
    assert.match(welcome({ ...serving, url: 'http://[::]:1' }, {}).join(), /http:\/\/\[::1\]:1\/docs/);
  });

  test('name no address of a browser for a socket', () => {
    const lines = welcome({ ...serving, url: 'unix:/run/a b.sock' }, {});
    assert.match(lines[0] ?? '', /: svc ask --url 'unix:\/run\/a b\.sock' --state /);
    assert.deepEqual(lines.slice(1), ['Ctrl-C ends the server']);
  });

  test('say that a key is needed, and that no password is', () => {
    const [ask, browser] = welcome({ ...serving, needsKey: true, needsPassword: false }, {});
    assert.match(ask ?? '', /: SVC_API_KEY=\.\.\. svc ask /);
    assert.match(browser ?? '', /dashboard$/);
  });

  test('call the program by the name that the person has used', () => {
    assert.equal(programName({}), 'svc');
    assert.equal(programName({ npm_command: 'start', npm_package_name: '@svc/server' }), 'node bin/svc.js');
    assert.equal(programName({ npm_command: 'start', npm_package_name: 'a' }), 'npx @svc/server');
    assert.equal(programName({ npm_command: 'run-script' }), 'svc');
    assert.equal(resumeCommand(['batch', 'a b'], 'npx @svc/server'), "npx @svc/server batch 'a b' --resume");
  });
});
