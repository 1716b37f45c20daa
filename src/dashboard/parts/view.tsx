import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Caller } from '../../api/plumbing/caller.js';

/** What every part of a page knows: who looks at it, from where, and when. */
export interface View {
  /** Stands before every address of ours: the path of PUBLIC_URL, without a slash at its end. */
  readonly base: string;
  /** Where the API is found from outside, without a slash at its end; commands name it. */
  readonly publicUrl: string;
  /** The address of this page below `base`, with its query. */
  readonly address: string;
  readonly assets: PageAssets;
  readonly now: number;
  /** Undefined on the page for signing in. */
  readonly viewer?: Viewer;
  /** The action that has just been done, if any. */
  readonly done?: string | undefined;
}

export interface Viewer {
  readonly caller: Caller;
  /** Goes into every form; only the holder of the session knows it. */
  readonly csrf: string;
}

/** Addresses below `base`. */
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

/** The address of a page or asset of ours, as it stands in a link. */
export function useAddress(): (path: string) => string {
  const { base } = useView();
  return (path) => base + path;
}
