/** The lines for a person whose terminal a server has just started on: where it is, and what to try. */
import type { Serving } from '../server/run.ts';
import type { Environment } from '../settings/config.ts';

/** Returns the lines; their order is that in which a newcomer needs them. No browser reaches a socket. */
export function welcome({ url, needsKey, needsPassword }: Serving, env: Environment): readonly string[] {
  const own = url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
  const key = needsKey ? 'SVC_API_KEY=... ' : '';
  const asked = `--state 'I was charged twice.' --question 'Does the customer want money back?'`;
  const password = needsPassword ? ' and its password' : '';
  return [
    `try in another terminal: ${key}${programName(env)} ask --url ${shellQuoted(own)} ${asked}`,
    ...(own.startsWith('unix:')
      ? []
      : [`try in a browser: ${own}/docs for every route, ${own}/ for the dashboard${password}`]),
    'Ctrl-C ends the server',
  ];
}

/** Returns an argument as it is typed in a shell. */
export function shellQuoted(arg: string): string {
  if (/^[\w./:@%+=,\\-]+$/.test(arg) && (process.platform === 'win32' || !arg.includes('\\'))) return arg;
  return process.platform === 'win32' ? `"${arg}"` : `'${arg.replaceAll("'", "'\\''")}'`;
}

/** Returns a command that starts this program again where the person is, as far as npm says. */
export function programName({ npm_command, npm_package_name }: Environment): string {
  if (npm_command !== 'exec' && npm_command !== 'start') return 'svc';
  return npm_command === 'start' && npm_package_name === '@svc/server' ? 'node bin/svc.js' : 'npx @svc/server';
}
