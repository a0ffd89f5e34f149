import { offlineSince } from '../../api/call';
import { live, silentBecause } from '../../data/events';
import { State } from '../../parts/notes/state';

/** Whether events arrive at the moment. */
export function Live() {
  if (offlineSince.value !== null) return <State kind="off">No connection</State>;
  if (live.value) return <State kind="ok">Live</State>;
  return silentBecause.value ? <State kind="off">Events are off</State> : <State kind="wait">Connecting</State>;
}
