import { briefly, isObject, type Member, type PassedOver, type Sign, saysNothing, wholeNumber } from './around.js';
import { flagOf } from './spellings.js';

const SUCCESS_NAMES = new Set(['success', 'issuccess', 'successful', 'issuccessful', 'succeeded', 'ok']);
/** Names of a status: its number from 400 on, or its word, tells a failure. */
const STATUS_NAMES = new Set(['status', 'statuscode', 'httpstatus', 'httpstatuscode', 'result', 'outcome', 'resultstatus']);
/** Names of a code, whose number may be any: one that HTTP has for a failure tells one. */
const CODE_NAMES = new Set(['code', 'resultcode', 'responsecode', 'returncode']);
const ERROR_NAMES = new Set(
  [
    ['error', 'errors', 'err', 'haserror', 'haserrors', 'iserror', 'errorcode', 'errcode', 'errormessage', 'errormsg', 'errmsg'],
    ['errordescription', 'errordetail', 'errordetails', 'errorlist', 'errortype', 'errorinfo', 'validationerrors', 'fielderrors'],
    ['exception', 'exceptions', 'exceptionmessage', 'exceptiontype', 'fault', 'faults', 'faultcode', 'faultstring'],
    ['failed', 'failure', 'failures', 'isfailed', 'isfailure'],
  ].flat(),
);
/** Names of a flag that says that the service has not read everything. */
const PARTIAL_NAMES = new Set(
  [
    ['incomplete', 'isincomplete', 'incompleteresult', 'incompleteresults', 'incompletedata', 'timedout', 'istimedout'],
    ['partial', 'ispartial', 'partialresult', 'partialresults', 'ispartialresult', 'partialdata', 'partialcontent'],
  ].flat(),
);
/** Names of a sentence about the answer. */
const MESSAGE_NAMES = new Set(['message', 'msg', 'messages', 'detail', 'reason']);
const NO = /^(false|no|n|0)$/i;
const FAILURE_WORDS = new Set(
  [
    ['error', 'errors', 'fail', 'failed', 'failure', 'exception', 'fault', 'timeout', 'forbidden', 'denied', 'unavailable'],
    ['unauthorized', 'unauthorised', 'unauthenticated', 'throttled'],
  ].flat(),
);
const FAILURE = /^(timed ?out|not ?found|bad request|invalid request|too many requests|rate ?limit(ed| exceeded)?|busy)$/;
/** Words in the place of errors that say that there are none. */
const NO_ERROR = /^(0+|no[ _-]?errors?|ok(ay)?|success(ful(ly)?)?|succeeded|without errors?)[.!]?$/i;
const SUCCEEDED = /^(ok(ay)?|success(ful(ly)?)?|succeeded|done)[.!]?$/i;
const [FIRST_ERROR_STATUS, LAST_ERROR_STATUS] = [400, 599];

/** Finds the first member around a page's records (`membersAround`) that denies that the request succeeded, or did so as a whole, though its status is 200. */
export function denialOfSuccess(around: readonly Member[][], isPassedOver: PassedOver): Sign | undefined {
  return found(around, isPassedOver, ({ name, value }) => isDenial(name, value));
}

/** Finds a sentence around an answer without an array of records, where only that it has none could say that it is empty. */
export function sentenceOf(around: readonly Member[][], isPassedOver: PassedOver): Sign | undefined {
  return found(around, isPassedOver, ({ name, value }) => MESSAGE_NAMES.has(name) && isSentence(value));
}

function found(around: readonly Member[][], isPassedOver: PassedOver, is: (member: Member) => boolean): Sign | undefined {
  const each = around.flat().find((member) => is(member) && !isPassedOver(member.member));
  return each && { member: each.member, value: briefly(each.value), kind: 'flag' };
}

function isDenial(name: string, value: unknown): boolean {
  if (SUCCESS_NAMES.has(name)) return value === false || value === 0 || (typeof value === 'string' && NO.test(value.trim()));
  if (PARTIAL_NAMES.has(name)) return isTrue(value);
  const status = wholeNumber(value);
  if (CODE_NAMES.has(name) && status !== undefined) return status >= FIRST_ERROR_STATUS && status <= LAST_ERROR_STATUS;
  if (STATUS_NAMES.has(name) && status !== undefined) return status >= FIRST_ERROR_STATUS;
  if (STATUS_NAMES.has(name) || CODE_NAMES.has(name)) return typeof value === 'string' && tellsFailure(value);
  return ERROR_NAMES.has(name) && isFilled(value);
}

function isTrue(value: unknown): boolean {
  const flag = flagOf(value);
  return flag.kind === 'said' && flag.value;
}

/** Whether a word of a status tells a failure: "error", "SERVICE_UNAVAILABLE", "timeout". */
function tellsFailure(text: string): boolean {
  const words = text
    .trim()
    .replaceAll(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[\s_-]+/);
  if (['no', 'not', 'none', 'without', '0'].includes(words[0]!) && words[1]?.startsWith('error')) return false;
  return FAILURE.test(words.join(' ')) || words.some((word) => FAILURE_WORDS.has(word));
}

function isSentence(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(isSentence);
  return typeof value === 'string' && !saysNothing(value) && !SUCCEEDED.test(value.trim());
}

function isFilled(value: unknown): boolean {
  if (typeof value === 'string') return !saysNothing(value) && !NO_ERROR.test(value.trim());
  if (Array.isArray(value)) return value.length > 0;
  if (isObject(value)) return !hasCodeOfNone(value) && Object.values(value).some(isFilled);
  return value === true || (typeof value === 'number' && value !== 0);
}

/** Whether an error says by its own code that it is none: `{ "code": 0, "message": "…" }`. */
function hasCodeOfNone(error: object): boolean {
  const { code } = error as { readonly code?: unknown };
  return code === 0 || (typeof code === 'string' && NO_ERROR.test(code.trim()));
}
