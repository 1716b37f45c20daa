import { type Lesson, refusal } from './lesson.js';

/** Half of this number is more than the ten rows that the delete guard lets go without a person. */
const ENOUGH_TO_HOLD = 22;

const REFUSED =
  'A list that was read before is retried for up to an hour and then fails; a list that was never read fails at once. `muster runs show RUN` says why.';
const LACKING = `${REFUSED} With \`optional: true\`, a list that was never read is unavailable instead.`;

/** Failures that happen at every service sooner or later. */
export const EVERYDAY: readonly Lesson[] = [
  {
    name: 'revoke',
    does: 'The customer revokes the authorization: the service refuses the access token and the refresh token.',
    see: 'The run fails, and the company is reauthorization_required (token_refused), with a link to authorize again.',
    next: ['sync', 'companies'],
    act: { kind: 'revoke' },
  },
  {
    name: 'shrink',
    does: 'Half of the records disappear, as after a filter or a mistake at the service; the total agrees.',
    see: 'The list is verified, and no row is deleted: the deletions wait in an open hold until you approve or reject them.',
    next: ['sync', 'holds'],
    records: ENOUGH_TO_HOLD,
    act: { kind: 'hide', hides: (index) => index % 2 === 1 },
  },
  {
    name: 'forbid',
    does: 'The service refuses the list with 403 and a sentence in JSON, as if a role does not include it.',
    see: `${REFUSED} Every other list is mirrored.`,
    next: ['start', 'companies'],
    act: refusal(403, 'forbidden', 'Your role does not include this list.'),
  },
  {
    name: 'unpaid',
    does: 'The service refuses the list with 402: the company has not bought this module.',
    see: LACKING,
    next: ['start', 'companies'],
    entry: 'optional: true',
    act: refusal(402, 'payment_required', 'This module is not part of your subscription.'),
  },
  {
    name: 'absent',
    does: 'The service answers 404 in JSON: this company does not have the list.',
    see: LACKING,
    next: ['start', 'companies'],
    entry: 'optional: true',
    act: refusal(404, 'not_found', 'This list is not activated for the company.'),
  },
  {
    name: 'unauthorized',
    does: 'This list alone answers 401 to an access token that every other list accepts.',
    see: 'The list fails, at once or after retries, and the company keeps its authorization.',
    next: ['start', 'companies'],
    act: refusal(401, 'unauthorized', 'The access token does not include this list.'),
  },
];
