/** The exports of `@svc/server`: the engine in the caller's own process. */
import { EngineError } from '../engine/contract.ts';
import { DecisionError } from './decision-error.ts';
import { shareClass } from './shared-class.ts';

shareClass(DecisionError, 'DecisionError');
shareClass(EngineError, 'EngineError');

export type { ModelInfo } from '../engine/contract.ts';
export type { ErrorCode } from '../errors.ts';
export { type CallOptions, createEngine, type DecisionRequest, type LocalEngine } from './local-engine.ts';
export type { LocalEngineOptions } from './options.ts';
export type {
  AnswerTo,
  ChoiceAnswer,
  ChoiceQuestion,
  Decision,
  LevelNumber,
  NoulAnswer,
  NoulQuestion,
  OptionOf,
  Question,
  Questions,
  ScoreAnswer,
  ScoreQuestion,
  Text,
  Usage,
} from './questions.ts';
export { DecisionError, EngineError };
