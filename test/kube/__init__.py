# SPDX-License-Identifier: Apache-2.0
"""A real Kubernetes of one node, for tests of what gpusonde says of pods.

    components   its programs: Debian's packages, and Kubernetes out of Debian's source package
    sandbox      the namespaces that the node and the test live in: what a node changes on a machine, it changes there
    images       images of containers, made by hand
    node         starts and stops it
    guardian     ends and removes all of it, whatever became of the test
    plugin       a device plugin as NVIDIA's is, for the GPUs of the simulated driver
    nvidia       a runtime as NVIDIA's is: puts the driver's library into containers
    api          what a test asks of the API server
    reports      what an agent said of processes, and when, beside what is so
    attribution  the tests
    apiserver    tests of gpusonde-kube beside an API server, without a node
    chart        tests of the chart before such a server
"""
