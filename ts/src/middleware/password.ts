/** The operator's guard: the dashboard password, and what a call that does something needs beside it. */

import type { Middleware } from 'koa';
import basicAuth from 'koa-basic-auth';
import { HttpFailure } from '../errors.ts';
import type { Secret } from '../secret.ts';
import { type ApiKey, requireApiKey } from './api-key.ts';
import { refuseCrossSite } from './caller.ts';
import type { RequestContext, RequestState } from './request.ts';
import type { WrongGuesses } from './wrong-guesses.ts';

export interface OperatorParts {
  /** Absent: the password is off. */
  readonly password: Secret | undefined;
  /** Empty: the API key is off. */
  readonly apiKeys: readonly ApiKey[];
  readonly guesses: WrongGuesses;
}

/** What the operator's routes are behind. */
export interface Operator {
  /** For what only shows something. */
  readonly guard: Middleware<RequestState>;
  /**
   * For what uses the engine or changes something: no page of another site may cause it, not even one that may ask for
   * decisions, and where the password is off it is open to nobody who could not ask for a decision.
   */
  readonly action: Middleware<RequestState>;
}

export function createOperator({ password, apiKeys, guesses }: OperatorParts): Operator {
  const guard = requirePassword(password, guesses);
  const ownSite = refuseCrossSite();
  const key = requireApiKey(password ? [] : apiKeys, guesses);
  return { guard, action: (ctx, next) => ownSite(ctx, () => guard(ctx, () => key(ctx, next))) };
}

/** Lets requests pass that carry `password`: in Basic auth with any name, else as `?password=`. */
function requirePassword(password: Secret | undefined, guesses: WrongGuesses): Middleware<RequestState> {
  const opens = password && passwordCheck(password);
  return async (ctx, next) => {
    // What the operator sees is kept by no cache, and an address with the password in it is told to no other site.
    // No page of another site may load it as if it were a script or an image of its own.
    ctx.set({
      'Cache-Control': 'no-store',
      'Referrer-Policy': 'no-referrer',
      'Cross-Origin-Resource-Policy': 'same-origin',
      'X-Content-Type-Options': 'nosniff',
    });
    if (opens) {
      const isRight = opens(ctx);
      if (isRight === false) await guesses.note(ctx);
      if (isRight !== true) throw wrongPassword();
    }
    await next();
  };
}

const BASIC = /^ *Basic( |$)/i;

/** Returns a function that says whether a request's password is right; undefined when it carries none. */
function passwordCheck(password: Secret): (ctx: RequestContext) => boolean | undefined {
  // No name to compare: any will do. It compares passwords in constant time.
  const options = { name: '', pass: password.reveal(), realm: 'svc' };
  const basic = basicAuth(options);
  return (ctx) => {
    if (BASIC.test(ctx.req.headers.authorization ?? '')) return passes(() => basic(ctx, async () => {}));
    const given = new URLSearchParams(ctx.querystring).get('password');
    return given === null ? undefined : password.matches(given);
  };
}

/** Returns whether `check` does not throw: its own 401 has another body than ours. */
function passes(check: () => unknown): boolean {
  try {
    check();
    return true;
  } catch {
    return false;
  }
}

function wrongPassword(): HttpFailure {
  return new HttpFailure('wrong_password', 'missing or wrong password', { 'WWW-Authenticate': 'Basic realm="svc"' });
}
