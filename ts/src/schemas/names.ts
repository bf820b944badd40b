/** Names of the API that several rooms spell. This file imports nothing, so the pages in the browser may import it. */

/** The path whose errors have OpenAI's format, whatever its caller accepts. */
export const DECISIONS_PATH = '/v1/decisions';

/** The header with the time that a request may take, in milliseconds from its arrival. */
export const TIMEOUT_HEADER = 'x-request-timeout-ms';

/** The phases of a decision's time, and the total. */
export const PHASES = ['encode', 'wait', 'run', 'total'] as const;

/** The three types of a question, in the order in which the pages show them. */
export const QUESTION_TYPES = ['choice', 'score', 'noul'] as const;

export type QuestionType = (typeof QUESTION_TYPES)[number];
