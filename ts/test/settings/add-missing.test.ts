import assert from 'node:assert/strict';
import {
  chmodSync,
  chownSync,
  lstatSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { addMissing } from '../../src/settings/add-missing.ts';
import { loadConfig } from '../../src/settings/config.ts';
import { runSvc } from '../svc-process.ts';
import { folderWithConfig, makeUnwritable, temporaryFolder, withoutPrivilege } from '../temporary-folder.ts';

suite('what an svc.json lacks of listen and device', () => {
  for (const [what, before, after] of [
    [
      'is added behind what is there',
      '{\n  "threads": 2\n}\n',
      '{\n  "threads": 2,\n  "listen": L,\n  "device": D\n}\n',
    ],
    ['is one of them alone', '{"device":"cpu"}', '{"device":"cpu","listen":L}'],
    ['is nothing where both are set', '{"listen": "0.0.0.0:1", "device" : "cpu"}', undefined],
    [
      'is set apart as the rest is',
      '{ "a" : 1,  "threads" : 2 }',
      '{ "a" : 1,  "threads" : 2,  "listen" : L,  "device" : D }',
    ],
    [
      "leaves the user's spaces, order and numbers alone",
      '{\n\t"threads":   2,\n\n\t"listen": ":1", "cors_origins": [\n"https://a.example" ]}\n\n',
      '{\n\t"threads":   2,\n\n\t"listen": ":1", "cors_origins": [\n"https://a.example" ], "device": D}\n\n',
    ],
    [
      'takes the line ends of the file',
      '{\r\n    "threads": 2\r\n}\r\n',
      '{\r\n    "threads": 2,\r\n    "listen": L,\r\n    "device": D\r\n}\r\n',
    ],
    ['keeps a byte order mark', '\uFEFF{"device": "cpu"}', '\uFEFF{"device": "cpu","listen": L}'],
    ['fills an empty object', '{ }\n', '{\n  "listen": L,\n  "device": D\n}\n'],
    [
      'does not look at keys further in',
      '{"x": {"listen": 1, "device": 2}}',
      '{"x": {"listen": 1, "device": 2},"listen": L,"device": D}',
    ],
  ] as const) {
    test(what, (t) => {
      const file = join(folderWithConfig(t, before), 'svc.json');
      const wanted = after?.replace('L', '"127.0.0.1:21118"').replace('D', '"auto"') ?? before;
      const added = addMissing(file);
      assert.equal(readFileSync(file, 'utf8'), wanted);
      assert.deepEqual(
        added,
        ['listen', 'device'].filter((key) => !before.includes(`"${key}"`) || before.includes('"x"')),
      );
      assert.deepEqual(addMissing(file), []);
    });
  }

  test('is both where there is no file, which is then the one that a first start makes', (t) => {
    const [made, started] = [temporaryFolder(t), temporaryFolder(t)];
    assert.deepEqual(addMissing(join(made, 'svc.json')), ['listen', 'device']);
    loadConfig({ env: {}, cwd: started, create: true });
    const [one, other] = [made, started].map((folder) => readFileSync(join(folder, 'svc.json'), 'utf8'));
    assert.equal(one, other);
    assert.equal(loadConfig({ env: {}, cwd: made }).config.generated, true);
  });

  test('is not added to a file that the server would refuse, which is told in one line', async (t) => {
    for (const [text, line] of [
      ['{"threads": 2,}', 'svc.json: invalid JSON at line 1, column 15: property name expected'],
      ['{} // mine', 'svc.json: invalid JSON at line 1, column 4: invalid comment token'],
      ['[]', 'svc.json: must be a JSON object'],
      ['', 'svc.json: invalid JSON at line 1, column 1: value expected'],
    ] as const) {
      const cwd = folderWithConfig(t, text);
      const { code, stderr } = await runSvc(t, ['config', 'add-missing', 'svc.json'], { cwd });
      assert.deepEqual([code, stderr], [1, `${line}\n`]);
      assert.equal(readFileSync(join(cwd, 'svc.json'), 'utf8'), text);
      assert.deepEqual(readdirSync(cwd), ['svc.json']);
    }
  });

  test('is told in one line when it is added, and in none when there is nothing to add', async (t) => {
    const cwd = folderWithConfig(t, { device: 'cpu' });
    const first = await runSvc(t, ['config', 'add-missing', 'svc.json'], { cwd });
    assert.deepEqual([first.code, first.stdout], [0, `${join(cwd, 'svc.json')}: added listen\n`]);
    const second = await runSvc(t, ['config', 'add-missing', 'svc.json'], { cwd });
    assert.deepEqual([second.code, second.stdout, second.stderr], [0, '', '']);
  });

  if (process.platform !== 'win32') {
    test('leaves the mode of the file, its owner, and the link that leads to it', (t) => {
      const folder = folderWithConfig(t, { threads: 1 });
      const [file, link] = [join(folder, 'svc.json'), join(folder, 'link.json')];
      chmodSync(file, 0o640);
      if (process.geteuid?.() === 0) chownSync(file, 65_534, 65_534);
      const before = statSync(file);
      symlinkSync('svc.json', link);
      addMissing(link);
      const { mode, uid, gid } = statSync(file);
      assert.deepEqual({ mode, uid, gid }, { mode: before.mode, uid: before.uid, gid: before.gid });
      assert.ok(lstatSync(link).isSymbolicLink());
      assert.deepEqual(loadConfig({ env: {}, cwd: folder }).origins.get('listen'), 'svc.json');
    });
  }

  test('stands in a folder that cannot be written: nothing to do when nothing lacks, else one line', (t) => {
    const folder = folderWithConfig(t, { listen: ':1', device: 'cpu' });
    const file = join(folder, 'svc.json');
    makeUnwritable(folder);
    assert.deepEqual(
      withoutPrivilege(() => addMissing(file)),
      [],
    );
    writeFileSync(file, '{}');
    assert.throws(() => withoutPrivilege(() => addMissing(file)), {
      name: 'Refusal',
      message: `${file}: cannot be written (${process.platform === 'win32' ? 'EPERM' : 'EACCES'})`,
    });
    assert.equal(readFileSync(file, 'utf8'), '{}');
  });
});
