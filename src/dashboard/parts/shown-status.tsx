import type { RunModel, WalkModel } from '../../api/runs/run-model.js';
import { numberText, stateText } from './shown-values.js';

type Shown = readonly [text: string, tone: 'good' | 'warn' | 'bad' | 'busy' | 'quiet'];

const TONES = { queued: 'quiet', running: 'busy', succeeded: 'good', failed: 'bad', cancelled: 'quiet' } as const;

/** The status of a run or of a walk, with what its success leaves open: "Succeeded, 12 rejected". */
export function ShownStatus({ of: shown }: { readonly of: RunModel | WalkModel }) {
  const [text, tone] = 'walks' in shown ? ofRun(shown) : ofWalks(shown.status, [shown]);
  return <span class={`state ${tone}`}>{text}</span>;
}

function ofRun({ status, retry_at, waits_until, walks }: RunModel): Shown {
  if (waits_until !== undefined) return ['Waits for quiet hours', 'quiet'];
  return status === 'queued' && retry_at !== undefined ? ['Waits to retry', 'warn'] : ofWalks(status, walks);
}

function ofWalks(status: RunModel['status'], walks: readonly WalkModel[]): Shown {
  const text = stateText(status);
  if (status !== 'succeeded') return [text, TONES[status]];
  const rejected = walks.reduce((sum, walk) => sum + walk.rejected, 0);
  const differing = walks.reduce((sum, { verify }) => sum + faultsIn(verify), 0);
  const unproved = walks.filter(isUnproved).length;
  const rests = [
    ...(rejected > 0 ? [`${numberText(rejected)} rejected`] : []),
    ...(differing > 0 ? [`${numberText(differing)} ${differing === 1 ? 'row differs' : 'rows differ'}`] : []),
    ...(unproved > 0 && rejected === 0 ? [walks.length === 1 ? 'not proved' : `${numberText(unproved)} not proved`] : []),
  ];
  if (rests.length > 0) return [[text, ...rests].join(', '), differing > 0 ? 'bad' : 'warn'];
  return [text, 'good'];
}

/** A list that the company does not have needs no proof, and neither does a reading that only compares. */
function isUnproved({ verified, unverified_reason }: WalkModel): boolean {
  return !verified && unverified_reason !== undefined && unverified_reason !== 'unavailable';
}

function faultsIn(found: WalkModel['verify']): number {
  return found === undefined || found.as_of === null ? 0 : found.missing + found.extra + found.different;
}
