"""A Java program of the suite: small heap, little compiling, its log beside its data."""

import os
import pathlib

LOGGING = pathlib.Path(__file__).with_name("log4j2.properties")


def java(classpath, main, *arguments, heap_mib=512):
    """The command line that runs the class `main`."""
    options = [f"-Xmx{heap_mib}m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    options += [f"-Dlog4j2.configurationFile={LOGGING}"]
    return [f"{os.environ['JAVA_HOME']}/bin/java", *options, "-cp", classpath, main, *arguments]


def write_properties(file, properties):
    file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    return file
