/** Recipes for people who run machines. */
import type { Recipe } from './recipe.ts';

export const OPERATIONS: readonly Recipe[] = [
  {
    name: 'log-severity',
    title: 'Log severity',
    summary: 'How bad a log line really is, whatever level its author gave it.',
    why: 'Programs cry wolf: “ERROR” may be a typo of a user, and “info” the last words of a disk. A scale over the text of the line gives a second opinion that sorts a thousand lines in seconds.',
    request: {
      state:
        'kernel: EXT4-fs error (device sda1): ext4_find_entry: reading directory lblock 0, I/O error, remounting filesystem read-only',
      questions: {
        severity: {
          type: 'score',
          instructions: 'How serious is this log line for the service?',
          criteria: [
            'routine information',
            'worth a look some day',
            'a part does not work',
            'the service is down or data is lost',
          ],
        },
        component: {
          type: 'choice',
          instructions: 'Which part of the system is it about?',
          criteria: {
            storage: 'disks, file systems',
            network: 'connections, DNS',
            memory: 'out of memory, swapping',
            application: 'the program itself',
          },
        },
      },
    },
    steps: [
      { when: 'severity of 2.3 or more, confidence of 0.5 or more', action: 'Wake someone.' },
      { when: 'severity from 1.3 to 2.3', action: 'Open a ticket for the component.' },
      { when: 'below 1.3', action: 'Count it, and look at what becomes frequent.' },
    ],
  },
  {
    name: 'alert-urgency',
    title: 'Alert urgency',
    summary: 'Now, today or never: for an alert as your monitoring sends it.',
    why: 'The payload of an alert is JSON already: send it as it is. The answer decides whether a phone rings, so take the threshold from your own history and not from this page.',
    request: {
      state: {
        alert: 'HighErrorRate',
        service: 'checkout',
        environment: 'production',
        summary: '38 % of requests fail with status 500',
        since: '12 minutes ago',
      },
      questions: {
        urgency: {
          type: 'choice',
          instructions: 'When must somebody act on this alert?',
          criteria: {
            now: 'customers are affected in production',
            today: 'it will become a problem if nobody acts',
            never: 'tests, noise, already over',
          },
        },
        customers: { type: 'noul', instructions: 'Are customers affected right now?' },
      },
    },
    steps: [
      { when: 'now, or customers of 0.7 or more', action: 'Page the person on call.' },
      { when: 'today', action: 'Write into the team’s channel.' },
      { when: 'never with a confidence of 0.9 or more', action: 'Only count it. With less: as today.' },
    ],
  },
  {
    name: 'release-notes',
    title: 'Release-note sorting',
    summary: 'Which part of the release notes a change belongs to, and whether it breaks something.',
    why: 'Notes are written on the last day from a hundred titles. Sorting them is the dull part; the choice gives a draft, and the yes or no makes sure that nobody misses a breaking change.',
    request: {
      state: 'Remove the deprecated `--legacy-auth` flag; callers must use tokens now',
      questions: {
        section: {
          type: 'choice',
          instructions: 'Which part of the release notes does this change belong to?',
          criteria: {
            added: 'a new feature',
            changed: 'existing behaviour is different now',
            fixed: 'a bug is gone',
            removed: 'something is gone',
            internal: 'tests, builds, refactoring: users do not notice',
          },
        },
        breaking: { type: 'noul', instructions: 'Must users change something because of it?' },
      },
    },
    steps: [
      { when: 'breaking of 0.3 or more', action: 'Put it at the top, and let its author say what to do.' },
      { when: 'section with a confidence of 0.6 or more', action: 'Sort it there.' },
      { when: 'below 0.6', action: 'Put it under “to be sorted”.' },
    ],
  },
];
