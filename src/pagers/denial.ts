import { briefly, isObject, type Member, type PassedOver, saysNothing, type Sign, wholeNumber } from './around.js';

const SUCCESS_NAMES = new Set(['success', 'issuccess', 'successful', 'issuccessful', 'succeeded', 'ok']);
const STATUS_NAMES = new Set(['status', 'statuscode', 'httpstatus', 'httpstatuscode']);
const ERROR_NAMES = new Set(['error', 'errors', 'haserror', 'haserrors', 'iserror']);
const NO = /^(false|no|n|0)$/i;
const FAILED = /^(error|fail|failed|failure)$/i;
const FIRST_ERROR_STATUS = 400;

/** Finds the first member around a page's records (`membersAround`) that denies that the request succeeded, though its status is 200. */
export function denialOfSuccess(around: readonly Member[][], isPassedOver: PassedOver): Sign | undefined {
  for (const { member, name, value } of around.flat())
    if (isDenial(name, value) && !isPassedOver(member)) return { member, value: briefly(value), kind: 'flag' };
  return undefined;
}

function isDenial(name: string, value: unknown): boolean {
  if (SUCCESS_NAMES.has(name)) return value === false || value === 0 || (typeof value === 'string' && NO.test(value.trim()));
  if (STATUS_NAMES.has(name)) {
    const status = wholeNumber(value);
    return status === undefined ? typeof value === 'string' && FAILED.test(value.trim()) : status >= FIRST_ERROR_STATUS;
  }
  return ERROR_NAMES.has(name) && isFilled(value);
}

function isFilled(value: unknown): boolean {
  if (typeof value === 'string') return !saysNothing(value);
  if (Array.isArray(value)) return value.length > 0;
  if (isObject(value)) return Object.values(value).some(isFilled);
  return value === true || (typeof value === 'number' && value !== 0);
}
