/** Recipes about people who write to a company. */
import type { Recipe } from './recipe.ts';

export const CUSTOMERS: readonly Recipe[] = [
  {
    name: 'ticket-triage',
    title: 'Ticket triage',
    summary: 'Which team, how angry, and is it about money: three questions in one call.',
    why: 'A new ticket needs a team and a place in the queue before anyone has read it. One request asks all of it: the ticket is read once, and every further question about it costs little.',
    request: {
      state:
        'I was charged twice for my subscription this month and nobody answers my emails. Please give me my money back.',
      questions: {
        team: {
          type: 'choice',
          instructions: 'Which team should handle this ticket?',
          criteria: {
            billing: 'payments, invoices, refunds',
            technical: 'bugs, errors, outages',
            account: 'login, password, profile',
            sales: 'prices, plans, upgrades',
          },
        },
        anger: {
          type: 'score',
          instructions: 'How angry is the customer?',
          criteria: ['calm', 'annoyed', 'angry', 'furious'],
        },
        refund: { type: 'noul', instructions: 'Does the customer ask for money back?' },
      },
    },
    steps: [
      { when: 'team: confidence of 0.6 or more', action: 'Assign the ticket to the team.' },
      {
        when: 'team: confidence below 0.6',
        action: 'Put it into the common inbox, with the two likeliest teams as tags.',
      },
      {
        when: 'anger above 2, or refund above 0.8',
        action: 'Move it up the queue. Do not pay anything back by this alone.',
      },
    ],
  },
  {
    name: 'intent-routing',
    title: 'Intent routing with “none of these”',
    summary: 'Send a chat message to the right flow, and let it fall through when none fits.',
    why: 'A list of intents is never complete. Without a way out, a model must pick a wrong one; an option that says so in words gives it one. Read the confidence all the same: models are often too sure that one of the named options fits.',
    request: {
      state: 'Hi, can I still change the delivery address? The parcel has not been sent yet.',
      questions: {
        intent: {
          type: 'choice',
          instructions: 'What does the customer want to do?',
          criteria: {
            track_order: 'find out where a parcel is',
            change_order: 'change the address, the items or the date of an order',
            cancel_order: 'cancel an order',
            return_item: 'send something back',
            none_of_these: 'anything else, or not clear',
          },
        },
      },
    },
    steps: [
      { when: 'confidence of 0.7 or more, and not none_of_these', action: 'Start the flow.' },
      { when: 'confidence from 0.4 to 0.7', action: 'Offer the two likeliest flows as buttons.' },
      { when: 'below 0.4, or none_of_these', action: 'Hand over to a person.' },
    ],
  },
  {
    name: 'lead-scoring',
    title: 'Lead scoring',
    summary: 'How close an enquiry is to a purchase, and whether it asks for a meeting.',
    why: 'Sales cannot call everybody. A level on a scale sorts the list; the reason beside it says how to begin the call.',
    request: {
      state:
        'We are a logistics company with 240 drivers and want to replace our dispatch software before March. Budget is approved. Could you show us the product next week?',
      questions: {
        interest: {
          type: 'score',
          instructions: 'How close is this company to buying?',
          criteria: [
            'no interest, spam or a job application',
            'looks around, no need yet',
            'has a need, compares products',
            'has a budget and a date, ready to buy',
          ],
        },
        asks_for_demo: { type: 'noul', instructions: 'Does the writer ask for a demo or a meeting?' },
      },
    },
    steps: [
      { when: 'interest of 2.2 or more', action: 'Call today.' },
      { when: 'interest from 1 to 2.2', action: 'Send the material, ask again in a week.' },
      {
        when: 'confidence of interest below 0.4',
        action: 'Let a person read it: the level is an average of very different guesses.',
      },
    ],
  },
  {
    name: 'refund-policy',
    title: 'Refund policy over a JSON record',
    summary: 'A rule in words, applied to an order as your database has it.',
    why: 'The state may be any JSON value: it is read as the text that was sent. Put facts that must be exact, such as a number of days, into the record as words or check them in code: small models do not calculate.',
    request: {
      state: {
        order: 'A-20417',
        item: 'running shoes',
        opened: true,
        used: false,
        return_period: 'not over',
        reason: 'too small',
        receipt: 'yes',
      },
      questions: {
        decision: {
          type: 'choice',
          instructions:
            'Apply the policy: unused goods with a receipt may be returned within the return period; used goods may not; everything else is looked at by a person.',
          criteria: {
            refund: 'unused, with a receipt, within the return period',
            reject: 'used, or after the return period',
            review: 'a fact is missing or contradicts another',
          },
        },
        size_problem: { type: 'noul', instructions: 'Is the reason for the return that the size is wrong?' },
      },
    },
    steps: [
      {
        when: 'refund with a confidence of 0.9 or more',
        action: 'Pay back small amounts at once, larger ones after a look.',
      },
      { when: 'reject', action: 'Never reject by a model alone: a person confirms.' },
      { when: 'anything else', action: 'Review.' },
    ],
  },
];
