import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Caller } from '../../api/plumbing/caller.js';

export interface View {
  /** The path of PUBLIC_URL without a final slash. Every address of the control room begins with it. */
  readonly base: string;
  /** The outside address of the API, without a final slash; commands use it. */
  readonly publicUrl: string;
  /** The address of this page below `base`, with its query. */
  readonly address: string;
  readonly assets: PageAssets;
  readonly now: number;
  /** The time zone of the schedule, in which pages show times. */
  readonly timezone: string;
  /** Undefined on the sign-in page. */
  readonly viewer?: Viewer;
  /** The numbers of the menu; undefined where they are not known. */
  readonly counts?: { readonly issues: number; readonly holds: number } | undefined;
  /** The name of the action that was just done, as the address gives it. */
  readonly done?: string | undefined;
  /** The name of the action that was not done, since the session had ended. */
  readonly undone?: string | undefined;
}

export interface Viewer {
  readonly caller: Caller;
  /** The CSRF token of every form; only the holder of the session knows it. */
  readonly csrf: string;
}

export interface PageAssets {
  readonly sheet: string;
  readonly scripts: readonly string[];
}

export const ViewContext = createContext<View | undefined>(undefined);

export function useView(): View {
  const view = useContext(ViewContext);
  if (!view) throw new Error('A part of a page was rendered outside of a page.');
  return view;
}

/** The address of this page below `base` without what the last action left in it, to come back to the same part of a list. */
export function useHere(): string {
  return withoutNotices(useView().address);
}

/** The address without the names of actions that were done or not. */
export function withoutNotices(address: string): string {
  const [path, query = ''] = address.split('?');
  const kept = query.split('&').filter((part) => part !== '' && !/^(un)?done=/.test(part));
  return kept.length === 0 ? path! : `${path}?${kept.join('&')}`;
}

export function useAddress(): (path: string) => string {
  const { base } = useView();
  return (path) => base + path;
}
