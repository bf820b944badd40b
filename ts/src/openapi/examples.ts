/** The examples of the OpenAPI document. A test sends each request and checks each answer against its schema. */

const STATE = 'My card was charged twice and nobody answers my mails';

const QUESTIONS = {
  refund: { type: 'noul', instructions: 'Does the customer want money back?' },
  team: {
    type: 'choice',
    instructions: 'Which team should handle this?',
    criteria: { billing: 'payments, invoices', tech: 'bugs, outages', sales: null },
  },
  anger: { type: 'score', instructions: 'How angry is the customer?', criteria: ['calm', 'annoyed', 'furious'] },
};

const ANSWERS = {
  refund: {
    type: 'noul',
    noul: 0.269153,
    probabilities: { false: 0.730847, true: 0.269153 },
    confidence: 0.461694,
    answer_confidence: 0.730847,
    action: { act_probability: 0.739263 },
  },
  anger: {
    type: 'score',
    score: 1.081742,
    probabilities: { 0: 0.028378, 1: 0.861502, 2: 0.11012 },
    confidence: 0.792253,
    answer_confidence: 0.861502,
    legend: { 0: 'calm', 1: 'annoyed', 2: 'furious' },
    action: { act_probability: 0.776614 },
  },
};

const USAGE = { input_tokens: 67, output_tokens: 0, server_ms: 20.01 };

const BATCH = {
  summary: 'Three states, one question',
  value: { states: [STATE, { subject: 'Where is it?' }, null], questions: { refund: QUESTIONS.refund } },
};

/** The request examples, by the name of the request's schema. */
export const REQUEST_EXAMPLES = {
  DecisionRequest: {
    text: { summary: 'All three types about a text', value: { state: STATE, questions: QUESTIONS } },
    json: {
      summary: 'A JSON value, options without descriptions, and what yes and no mean',
      value: {
        state: { subject: 'Where is my order?', days_waiting: 12 },
        questions: {
          channel: { type: 'choice', instructions: 'How did they write?', criteria: ['mail', 'phone', 'chat'] },
          late: { type: 'noul', instructions: 'Is it late?', criteria: { true: 'more than a week' } },
        },
      },
    },
  },
  BatchRequest: { states: BATCH },
  OpenAiDecisionRequest: {
    text: {
      summary: 'All three types about a text',
      value: {
        model: 'svc',
        input: STATE,
        questions: [
          { type: 'predicate', name: 'refund', instructions: QUESTIONS.refund.instructions },
          {
            type: 'choice',
            name: 'team',
            instructions: QUESTIONS.team.instructions,
            choices: [{ value: 'billing', description: 'payments, invoices' }, { value: 'tech' }, { value: false }],
          },
          {
            type: 'score',
            instructions: QUESTIONS.anger.instructions,
            levels: [{ label: 'calm' }, { label: 'annoyed', description: 'says so' }, { label: 'furious' }],
          },
        ],
      },
    },
    messages: {
      summary: 'A conversation with a call of a tool',
      value: {
        model: 'svc',
        input: [
          { role: 'user', content: [{ type: 'input_text', text: STATE }] },
          { type: 'function_call', call_id: '1', name: 'find_order', arguments: '{"id":7}' },
          { type: 'function_call_output', call_id: '1', output: 'paid twice' },
        ],
        questions: [{ type: 'predicate', instructions: 'Was the order paid twice?' }],
      },
    },
  },
};

/** The answer examples, by the name of the answer's schema. */
export const ANSWER_EXAMPLES = {
  DecisionResponse: { model: 'svc', answers: ANSWERS, usage: USAGE },
  BatchResponse: {
    model: 'svc',
    results: [
      { answers: { refund: ANSWERS.refund }, usage: USAGE },
      { error: { error_type: 'too_many_tokens', message: 'too many tokens, the limit is 131072 (max_tokens)' } },
    ],
    usage: USAGE,
  },
  OpenAiDecision: {
    model: 'svc',
    answers: [{ type: 'predicate', name: 'refund', probability: ANSWERS.refund.noul }],
    usage: {
      input_tokens: USAGE.input_tokens,
      input_tokens_details: { cache_write_tokens: 0, cached_tokens: 0 },
      output_tokens: 0,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: USAGE.input_tokens,
    },
  },
};
