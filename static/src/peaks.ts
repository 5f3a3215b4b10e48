/** Peaks from the server: audiowaveform data, binary (version 1 or 2) or JSON. Values come back within -1 … 1. */

const POINTS_A_SECOND = 100; // what the server stores, where an answer does not say

export interface Peaks {
  /** Highest and lowest value per point, alternating: what wavesurfer takes as one channel. */
  values: Float32Array;
  /** Seconds, from the number of points. */
  seconds: number;
}

/** Read the binary form: header of 20 (v1) or 24 (v2) bytes, then pairs of minimum and maximum. Throws on anything else. */
export function peaksFromBinary(data: ArrayBuffer): Peaks {
  const view = new DataView(data);
  if (data.byteLength < 20) throw new Error("peaks: too short");
  const version = view.getInt32(0, true);
  if (version !== 1 && version !== 2) throw new Error(`peaks: version ${version}`);
  const eightBit = (view.getUint32(4, true) & 1) === 1;
  const rate = view.getInt32(8, true);
  const samplesPerPoint = view.getInt32(12, true);
  const points = view.getUint32(16, true);
  const channels = version === 2 ? view.getInt32(20, true) : 1;
  const head = version === 2 ? 24 : 20;
  const width = eightBit ? 1 : 2;
  if (channels < 1 || rate < 1 || data.byteLength < head + points * channels * 2 * width) throw new Error("peaks: cut short");
  const values = new Float32Array(points * 2);
  for (let i = 0; i < points; i += 1) {
    const at = head + i * channels * 2 * width; // the first channel
    const low = eightBit ? view.getInt8(at) / 128 : view.getInt16(at, true) / 32768;
    const high = eightBit ? view.getInt8(at + 1) / 128 : view.getInt16(at + 2, true) / 32768;
    values[2 * i] = high;
    values[2 * i + 1] = low;
  }
  return { values, seconds: (points * samplesPerPoint) / rate };
}

interface PeaksJson {
  data: number[];
  bits?: number;
  sample_rate?: number;
  samples_per_pixel?: number;
}

/** Read the JSON form. */
export function peaksFromJson(json: PeaksJson): Peaks {
  const scale = json.bits === 16 ? 32768 : 128;
  const values = new Float32Array(json.data.length);
  for (let i = 0; i + 1 < json.data.length; i += 2) {
    values[i] = (json.data[i + 1] ?? 0) / scale;
    values[i + 1] = (json.data[i] ?? 0) / scale;
  }
  const points = json.data.length / 2;
  const perSecond = json.sample_rate && json.samples_per_pixel ? json.sample_rate / json.samples_per_pixel : POINTS_A_SECOND;
  return { values, seconds: points / perSecond };
}

/** Fetch and read either form. */
export async function peaksFetch(url: string): Promise<Peaks> {
  const answer = await fetch(url, { credentials: "same-origin" });
  if (!answer.ok) throw new Error(`peaks: ${answer.status}`);
  if ((answer.headers.get("content-type") ?? "").includes("json")) return peaksFromJson((await answer.json()) as PeaksJson);
  return peaksFromBinary(await answer.arrayBuffer());
}
