import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { makeUnwritable } from '../temporary-folder.ts';
import { installed, Place, programFolder, refusal, refused } from './place.ts';
import { PLATFORM, Releases } from './releases.ts';

if (process.platform !== 'win32') {
  suite('install.sh changes nothing and says why in one line', { concurrency: 2 }, () => {
    for (const [what, damage, line] of [
      [
        'a changed byte',
        (bytes: Buffer) => bytes.with(bytes.length - 9, (bytes.at(-9) ?? 0) ^ 1),
        /^svc-0\.2\.0-.*\.tar\.gz is damaged or not what/,
      ],
      [
        'half of an archive',
        (bytes: Buffer) => bytes.subarray(0, bytes.length / 2),
        /^svc-0\.2\.0-.*\.tar\.gz is damaged or not what/,
      ],
      ['an empty archive', () => Buffer.alloc(0), /^svc-0\.2\.0-.*\.tar\.gz is damaged or not what/],
    ] as const) {
      test(`for ${what}`, async (t) => {
        const { place, releases } = await installed(t);
        releases.damage('0.2.0', (bytes) => Buffer.from(damage(bytes)));
        await refused(place, ['--from', releases.folder], line);
      });
    }

    for (const [what, edit, line] of [
      [
        'no line of the archive',
        (text: string) => text.replace(/.*0\.2\.0-[a-z]+-a.*\n/g, ''),
        /^SHA256SUMS of .* has no line for svc-0\.2\.0-/,
      ],
      [
        'no sum in its line',
        (text: string) => text.replace(/^\w+(?= .*0\.2\.0)/gm, 'abc'),
        /has no clear line for svc-0\.2\.0-/,
      ],
      [
        'no hexadecimal sum',
        (text: string) => text.replace(/^\w+(?= .*0\.2\.0)/gm, 'x'.repeat(64)),
        /has no clear line for svc-0\.2\.0-/,
      ],
      [
        'two lines that differ',
        (text: string) => text + text.replace(/^\w{9}/gm, '111111111'),
        /has no clear line for svc-0\.2\.0-/,
      ],
      ['no line at all', () => '', /^SHA256SUMS of .* has no line for svc-0\.2\.0-/],
    ] as const) {
      test(`for a list of sums with ${what}`, async (t) => {
        const { place, releases } = await installed(t);
        releases.writeSums(edit);
        await refused(place, ['--from', releases.folder, '--version', '0.2.0'], line);
      });
    }

    test('for a list of sums with no archive of this platform', async (t) => {
      const { place, releases } = await installed(t);
      releases.writeSums((text) => text.replaceAll(PLATFORM, 'linux-s390x'));
      await refused(
        place,
        ['--from', releases.folder],
        new RegExp(`^SHA256SUMS of .* has no archive for ${PLATFORM}$`),
      );
    });

    for (const [what, options, line] of [
      [
        'does not start',
        { version: '0.2.0', says: '"$(no-such-program)" || exit 3' },
        /^this is not svc 0\.2\.0: it says/,
      ],
      [
        'is another version',
        { version: '0.2.0', says: '0.1.9' },
        /^this is not svc 0\.2\.0: it says that it is 0\.1\.9$/,
      ],
      [
        'cannot decide here',
        { version: '0.2.0', decidesNot: 'no engine here' },
        /^svc 0\.2\.0 cannot decide here: no engine here$/,
      ],
      [
        'has no program',
        { version: '0.2.0', without: 'bin/svc' },
        /^svc-0\.2\.0-.* is no archive of svc 0\.2\.0: it has no bin\/svc$/,
      ],
      ['has no Node', { version: '0.2.0', without: 'lib/node' }, /^svc-0\.2\.0-.* is no archive of svc 0\.2\.0/],
    ] as const) {
      test(`for a version that ${what}`, async (t) => {
        const { place, releases } = await installed(t);
        releases.add(options);
        await refused(place, ['--from', releases.folder], line);
      });
    }

    test('for a folder that has no list of sums', async (t) => {
      const { place } = await installed(t);
      await refused(place, ['--from', place.home], /^\/.* has no SHA256SUMS$/);
    });

    test('for settings that the server would refuse', async (t) => {
      const { place, releases } = await installed(t);
      place.writeSettings('{"threads": 2,}');
      await refused(place, ['--from', releases.folder], /^svc\.json: invalid JSON at line 1, column 15: property name/);
      assert.equal(readFileSync(place.settings, 'utf8'), '{"threads": 2,}');
    });

    test('for a folder that cannot be written, or is full', async (t) => {
      const { place, releases } = await installed(t);
      for (const tool of ['cp', 'tar', 'mv', 'mktemp']) {
        for (const [problem, line] of [
          ['No space left on device', /lib\/svc: no space is left there$/],
          ['Read-only file system', /lib\/svc cannot be written; name another folder with --prefix$/],
        ] as const) {
          const programs = await programFolder(t, { [tool]: `echo '${tool}: x: ${problem}' >&2; exit 1` });
          await refused(place, ['--from', releases.folder], line, { programs });
        }
      }
      const other = new Place(t);
      makeUnwritable(other.home);
      const line = refusal(await other.install(['--from', releases.folder], { isUnprivileged: true }));
      assert.equal(line, `${other.prefix}/lib/svc cannot be written; name another folder with --prefix`);
      assert.deepEqual(readdirSync(other.home), []);
    });

    for (const [what, uname, line, tools] of [
      [
        'a Mac with an Intel processor',
        'Darwin x86_64',
        /^Macs with an Intel processor are not supported; the container image runs there: docs\/container\.md$/,
        { sysctl: 'exit 1' },
      ],
      ['Windows', 'MINGW64_NT-10.0 x86_64', /^on Windows, run install\.ps1 in PowerShell$/, {}],
      [
        'FreeBSD',
        'FreeBSD amd64',
        /^there is no svc for FreeBSD-amd64, only for linux-amd64 linux-arm64 darwin-arm64, and for Windows$/,
        {},
      ],
      ['another processor', 'Linux riscv64', /^there is no svc for linux-riscv64, /, {}],
      ['a 32-bit system', 'Linux aarch64', /^this is a 32-bit system; /, { getconf: 'echo 32' }],
      [
        'a system without glibc',
        'Linux x86_64',
        /^this system has no glibc, which svc needs; the container image runs here/,
        { getconf: '[ $1 = LONG_BIT ] && echo 64' },
      ],
      [
        'an old glibc',
        'Linux x86_64',
        /^this system has glibc 2\.9, and svc needs 2\.28; /,
        { getconf: '[ $1 = LONG_BIT ] && echo 64 || echo glibc 2.9' },
      ],
    ] as const) {
      test(`on ${what}`, async (t) => {
        const [system, machine] = uname.split(' ');
        const scripts = { uname: `[ $1 = -s ] && echo ${system} || echo ${machine}`, ...tools };
        const place = new Place(t);
        assert.match(refusal(await place.install([], { programs: await programFolder(t, scripts) })), line);
        assert.deepEqual(readdirSync(place.home), []);
      });
    }

    test('for an Apple Silicon Mac whose shell runs under Rosetta it looks for its archive', async (t) => {
      const scripts = { uname: '[ $1 = -s ] && echo Darwin || echo x86_64', sysctl: 'echo 1' };
      const releases = new Releases(t).add({ version: '0.1.0' });
      releases.writeSums((text) => text.replaceAll(PLATFORM, 'plan9-mips'));
      const place = new Place(t);
      const programs = await programFolder(t, scripts);
      const line = refusal(await place.install(['--from', releases.folder], { programs }));
      assert.match(line, /has no archive for darwin-arm64$/);
      assert.deepEqual(readdirSync(place.home), []);
    });

    test('for a first installation, of which no folder stays that was not there before', async (t) => {
      const releases = new Releases(t).add({ version: '0.1.0', decidesNot: 'no engine here' });
      for (const before of ['', '.local', '.local/lib', '.local/lib/svc', '.local/lib/svc/mine']) {
        const place = new Place(t);
        mkdirSync(join(place.home, before), { recursive: true });
        const names = () => readdirSync(place.home, { recursive: true });
        const found = names();
        const line = refusal(await place.install(['--from', releases.folder]));
        assert.match(line, /^svc 0\.1\.0 cannot decide here/);
        assert.deepEqual(names(), found, before);
      }
    });

    for (const [args, line] of [
      [['--versio'], /^unknown argument --versio; see --help$/],
      [['--version'], /^--version needs a value; see --help$/],
      [['--version', '1.2/../3.4'], /^--version must be a version, such as 1\.2\.3$/],
      [['--version', 'latest'], /^--version must be a version/],
      [['--from='], /^--from needs a value/],
      [['--purge'], /^--purge goes with --uninstall$/],
    ] as const) {
      test(`for ${args.join(' ')}`, async (t) => {
        const place = new Place(t);
        assert.match(refusal(await place.install(args)), line);
        assert.deepEqual(readdirSync(place.home), []);
      });
    }

    test('without HOME', async (t) => {
      const place = new Place(t);
      assert.match(
        refusal(await place.install([], { env: { HOME: '' } })),
        /^HOME is not set; name a folder with --prefix$/,
      );
      assert.match(
        refusal(await place.install(['--prefix=x'], { env: { HOME: '' } })),
        /^HOME is not set; name the settings/,
      );
      const purge = ['--uninstall', '--purge', '--no-config', '--prefix=x'];
      assert.match(
        refusal(await place.install(purge, { env: { HOME: '' } })),
        /^HOME is not set, which says where data/,
      );
      assert.deepEqual(readdirSync(place.home), []);
    });
  });
}
