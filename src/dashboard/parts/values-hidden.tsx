import { mayAct, SEES_VALUES } from '../../api/plumbing/caller.js';
import { useView } from './view.js';

/** Says why a page has ids and no names. */
export function ValuesHidden() {
  return <p class="hint">Values of records are shown to operators and admins.</p>;
}

/** Whether the viewer is shown values of records. */
export function useSeesValues(): boolean {
  const { viewer } = useView();
  return viewer !== undefined && mayAct(viewer.caller, SEES_VALUES);
}
