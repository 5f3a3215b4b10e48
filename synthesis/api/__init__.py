"""REST doors of synthesis: conversions, sound, exports."""
