/** Recipes for reading texts by the thousand. */
import type { Recipe } from './recipe.ts';

export const TEXTS: readonly Recipe[] = [
  {
    name: 'review-stars',
    title: 'Review stars',
    summary: 'How many stars a review would give, when it gave none.',
    why: 'Mails and surveys have no stars. A score answers with the expected level: 2.6 says more than a flat 3, and an average over many texts is steadier than any single one.',
    request: {
      state:
        'The headphones sound great and the battery lasts for days, but the left hinge broke after two weeks. Support sent a new pair at once.',
      questions: {
        stars: {
          type: 'score',
          instructions: 'How satisfied is the reviewer?',
          criteria: ['very dissatisfied', 'dissatisfied', 'neither', 'satisfied', 'very satisfied'],
        },
        topic: {
          type: 'choice',
          instructions: 'What is the main complaint?',
          criteria: {
            quality: 'something broke or is badly made',
            delivery: 'late, lost or damaged parcels',
            support: 'nobody helps',
            price: 'too expensive',
            no_complaint: 'there is none',
          },
        },
      },
    },
    steps: [
      { when: 'many reviews of one product', action: 'Take the mean of stars plus 1, weighted by confidence.' },
      { when: 'stars below 1.5', action: 'Answer the customer first.' },
      { when: 'topic with a confidence below 0.6', action: 'Leave it out of the statistics.' },
    ],
  },
  {
    name: 'duplicate-detection',
    title: 'Duplicate detection',
    summary: 'Do two reports describe the same problem?',
    why: 'A search finds candidates; this tells which of them are the same. Both texts stand in one state, with names, so that the question can speak of them.',
    request: {
      state: {
        first: 'The app crashes when I open the camera on Android 14',
        second: 'Taking a photo closes the application immediately (Pixel 8)',
      },
      questions: {
        same: {
          type: 'noul',
          instructions: 'Do the first and the second report describe the same problem?',
          criteria: { true: 'one fix would solve both', false: 'different problems, even if the words are alike' },
        },
        similarity: {
          type: 'score',
          instructions: 'How alike are the two reports?',
          criteria: ['nothing in common', 'same area', 'probably the same', 'the same problem'],
        },
      },
    },
    steps: [
      { when: 'same of 0.9 or more', action: 'Link them, and tell both reporters.' },
      { when: 'same from 0.5 to 0.9', action: 'Suggest it to whoever opens the second one.' },
      { when: 'below 0.5', action: 'Leave them apart.' },
    ],
  },
];
