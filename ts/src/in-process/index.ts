/** The exports of `@svc/server`: the engine in the caller's own process. */
export { EngineError, type ModelInfo } from '../engine/contract.ts';
export type { ErrorCode } from '../errors.ts';
export { DecisionError } from './decision-error.ts';
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
