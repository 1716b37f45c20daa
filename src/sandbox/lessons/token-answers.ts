import type { Effect } from '../faults.js';
import { htmlAnswer, type Lesson, PASSING_SECONDS } from './lesson.js';

function oddAnswer(name: string, answered: string, effect: Effect): Lesson {
  return {
    name,
    does: `The company's access token ends, and the answer to its refresh is ${answered}.`,
    see: 'The run waits; a later refresh is granted. The company keeps its authorization.',
    next: ['sync', 'companies'],
    seconds: PASSING_SECONDS,
    act: { kind: 'token', effect },
  };
}

function json(status: number, value: object): Effect {
  return { kind: 'status', status, body: JSON.stringify(value) };
}

/** Answers to a refresh that do not concern the authorization, or get lost. */
export const TOKEN_ANSWERS: readonly Lesson[] = [
  oddAnswer(
    'token-early',
    '400 access_denied: the old token has not expired',
    json(400, { error: 'access_denied', error_description: 'access_token not expired' }),
  ),
  oddAnswer('token-unknown', '400 unknown_error', json(400, { error: 'unknown_error', error_description: 'retry your request' })),
  oddAnswer('token-unavailable', '400 temporarily_unavailable', json(400, { error: 'temporarily_unavailable' })),
  oddAnswer('token-message', '400 with a message and no error code', json(400, { Message: 'An error has occurred.' })),
  oddAnswer('token-error-200', '200 temporarily_unavailable', json(200, { error: 'temporarily_unavailable' })),
  oddAnswer('token-html', '200 with an HTML page', htmlAnswer(200, 'Maintenance')),
  oddAnswer('token-nothing', '204', { kind: 'status', status: 204, body: '' }),
  oddAnswer('token-cut', 'a cut connection', { kind: 'drop', when: 'before' }),
  oddAnswer('token-down', '503', { kind: 'status', status: 503 }),
];
